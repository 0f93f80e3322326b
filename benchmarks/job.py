"""The job of a load generator, and its outcome; both pass between processes as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Final, Literal

SENT: Final = "@sent@"
"""In a body or a header: becomes the time of sending, 19 digits of nanoseconds by the clock that all processes share."""
NUMBER: Final = "@number@"
"""In a body: becomes a running number of 8 digits."""
BEGUN: Final = "begun"
"""Printed by the generator once its connections are open, if the job consists of opening them."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request of several kinds; `key` is its credential if it is not the job's."""

    method: str
    path: str
    body: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """The requests to send.

    Args:
        paths: paths that are taken in turn with `method` and `body`; of NATS, subjects.
        calls: calls that are taken in turn instead.
        key, project: the credential, and the project where that does not say it.
        headers: further headers.
        body: the body, with the marks `SENT` and `NUMBER` in it.
        connections: number of connections; each has one request under way at most.
        warm_s, for_s: time before the measurement, and measured time; with `count` instead, that many requests are all.
        rate: requests a second; None for as many as get a response. Latency counts from when one was due.
        keep: whether to return the responses' bodies.
        until_cut: whether the job ends, without a failure, when the server ends the connections.
        drained: whether answers after the measured time count, too, with the time until the last of them; else a slow server with
            many connections would seem slower than it is. Only the own generator can.
        holds, times: a text that the body of each response must have exactly `times`; any body if it is empty. Only the own
            generator checks it.
        wire: the protocol that the server speaks.
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
    drained: bool = False
    holds: str = ""
    times: int = 1
    wire: Literal["http", "nats"] = "http"

    def encode(self) -> str:
        """Return the job as text."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> Job:
        """Return the job that `encode` has written."""
        given = json.loads(text)
        return cls(**{**given, "calls": [Call(**each) for each in given["calls"]]})

    def each(self) -> list[Call]:
        """Return the requests that are sent in turn."""
        return self.calls or [Call(self.method, path, self.body) for path in self.paths]

    def head(self, call: Call, size: int) -> str:
        """Return the head of an HTTP request, including the blank line, for a body of `size` bytes."""
        lines = [f"{call.method} {call.path} HTTP/1.1", "Host: localhost"]
        key = call.key or self.key
        lines += [f"Authorization: Bearer {key}"] if key else []
        lines += [f"project: {self.project}"] if self.project else []
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if call.method != "GET":
            lines += ["Content-Type: application/json"] if call.body else []
            lines += [f"Content-Length: {size}"]
        return "\r\n".join((*lines, "", ""))


@dataclass(slots=True)
class Outcome:
    """The outcome of a job.

    Args:
        rate: responses a second in the measured time.
        answers: number of all responses, the warm-up's included.
        latencies: milliseconds, sorted; of wrk a thousand quantiles of them and the longest.
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
    """Return the number of bytes of a body once its marks are replaced."""
    return len(body.replace(SENT, "0" * 19).replace(NUMBER, "0" * 8).encode())
