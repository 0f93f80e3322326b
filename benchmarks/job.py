"""What load is asked to do, and what comes of it; both pass between processes as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Final, Literal

SENT: Final = "@sent@"
"""In a body or a header: becomes the time of sending, 19 digits of nanoseconds by the clock that all processes share."""
NUMBER: Final = "@number@"
"""In a body: becomes a running number of 8 digits."""
BEGUN: Final = "begun"
"""What the generator says once its connections are open, where the job ends with them."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request of several kinds."""

    method: str
    path: str
    body: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """What to send.

    Args:
        paths: taken in turn with `method` and `body`; of NATS, subjects.
        calls: taken in turn instead.
        key, project: the credential, and the project where that does not say it.
        headers: more of them.
        body: with `SENT` and `NUMBER` in it.
        connections: each has one request under way at most.
        warm_s, for_s: not measured and measured time; with `count` instead, that many requests are all.
        rate: requests a second; None is as many as are answered. Latency counts from when one was due.
        keep: return the answers' bodies.
        until_cut: it is no failure that the server ends the connections, but the end of the job.
        wire: what the server speaks.
    """

    port: int
    paths: list[str] = field(default_factory=list)
    method: str = "POST"
    calls: list[Call] = field(default_factory=list)
    key: str = ""
    project: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    connections: int = 1
    warm_s: float = 0.0
    for_s: float = 0.0
    count: int | None = None
    rate: float | None = None
    keep: bool = False
    until_cut: bool = False
    wire: Literal["http", "nats"] = "http"

    def encode(self) -> str:
        """The job as text."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> Job:
        """The job that `encode` has written."""
        given = json.loads(text)
        return cls(**{**given, "calls": [Call(**each) for each in given["calls"]]})

    def each(self) -> list[Call]:
        """The requests that are taken in turn."""
        return self.calls or [Call(self.method, path, self.body) for path in self.paths]

    def head(self, call: Call, size: int) -> str:
        """A request's head over HTTP, up to its blank line, for a body of so many bytes."""
        lines = [f"{call.method} {call.path} HTTP/1.1", "Host: localhost"]
        lines += [f"Authorization: Bearer {self.key}"] if self.key else []
        lines += [f"project: {self.project}"] if self.project else []
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if call.method != "GET":
            lines += ["Content-Type: application/json"] if call.body else []
            lines += [f"Content-Length: {size}"]
        return "\r\n".join((*lines, "", ""))


@dataclass(slots=True)
class Outcome:
    """What came of a job.

    Args:
        rate: answers a second in the measured time.
        answers: all of them, the warm-up's included.
        latencies: milliseconds, sorted; of wrk a thousand quantiles of them.
        busy: the generator's own share of a core.
        by: the generator.
    """

    rate: float = 0.0
    answers: int = 0
    latencies: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    busy: float = 0.0
    by: str = "own"


def full_size(body: str) -> int:
    """How many bytes the body has once its marks are replaced."""
    return len(body.replace(SENT, "0" * 19).replace(NUMBER, "0" * 8).encode())
