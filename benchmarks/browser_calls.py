"""Calls as a page of the service's own origin makes them, with a cookie and an `Origin`, one after the other.

`python -m benchmarks.browser_calls` prints the medians of reading and posting, and the size of a list on the wire. The
same calls with a header that no browser sends bypass the fast path: the ratio shows its benefit.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROUNDS: Final = 5
CALLS: Final = 200
CONVERSATIONS: Final = 100
ENOUGH: Final = "100000000"
BY_THE_FRAMEWORK: Final = {"TE": "trailers"}
"""A header that changes no answer, but excludes a request from the fast path."""


@contextmanager
def service(directory: Path) -> Iterator[int]:
    """Run a service; yield its port."""
    limits = {"DESKWIRE_RATE_LIMIT_PER_MINUTE": "0", "DESKWIRE_LOG_LEVEL": "error"}
    command = [sys.executable, "-m", "deskwire", "serve", "--data", str(directory), "--port", "0"]
    process = subprocess.Popen(command, env={**os.environ, **limits}, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = next(each for each in process.stdout if "running at http" in each)
        yield int(line.partition("running at ")[2].split()[0].rpartition(":")[2])
    finally:
        process.terminate()
        process.wait()


class Page:
    """A page that is signed in as the demo's owner, on one connection."""

    def __init__(self, port: int, demo: dict[str, object], **further: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._headers = {
            "Origin": f"http://127.0.0.1:{port}",
            "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0",
            "Accept": "*/*",
            "Accept-Encoding": "gzip, deflate, br, zstd",
            "Accept-Language": "en-GB,en;q=0.9",
            "Referer": f"http://127.0.0.1:{port}/desk",
            "Connection": "keep-alive",
            "Content-Type": "application/json",
            "project": str(demo["projectId"]),
            **further,
        }

    def call(self, method: str, path: str, body: object = None) -> tuple[http.client.HTTPResponse, bytes]:
        """Make a call, which must succeed."""
        content = None if body is None else json.dumps(body)
        self._connection.request(method, f"/v3{path}", content, self._headers)
        response = self._connection.getresponse()
        received = response.read()
        assert response.status == 200, received
        return response, received

    def sign_in(self, demo: dict[str, object]) -> None:
        """Sign in, and keep the cookie."""
        response, _ = self.call("POST", "/auth/session", demo["user"])
        self._headers["Cookie"] = (response.headers["Set-Cookie"] or "").partition(";")[0]


def median_ms(call: Callable[[], object]) -> float:
    """The median of calls, in milliseconds."""
    taken = []
    for _ in range(CALLS):
        began = time.perf_counter()
        call()
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def main() -> None:
    """Measure, and print."""
    with tempfile.TemporaryDirectory() as folder, service(Path(folder)) as port:
        demo = json.loads((Path(folder) / "demo.json").read_text())
        backend = http.client.HTTPConnection("127.0.0.1", port)
        for number in range(CONVERSATIONS):
            body = json.dumps({"contact": {"userId": f"u{number}"}, "title": f"Order {number} is late"})
            headers = {"Authorization": f"Bearer {demo['serverKey']}", "Content-Type": "application/json"}
            backend.request("POST", "/v3/s2s/conversations", body, headers)
            made = json.loads(backend.getresponse().read())
        posts = f"/conversations/{made['id']}/messages"
        pages = {"fast path": Page(port, demo), "framework": Page(port, demo, **BY_THE_FRAMEWORK)}
        for page in pages.values():
            page.sign_in(demo)
        figures: dict[tuple[str, str], list[float]] = {}
        for _ in range(ROUNDS):
            for way, page in pages.items():
                calls = {
                    "GET me": lambda page=page: page.call("GET", "/users/me"),
                    "GET 20 conversations": lambda page=page: page.call("GET", "/conversations?limit=20"),
                    "GET 100 conversations": lambda page=page: page.call("GET", "/conversations?limit=100"),
                    "POST a message": lambda page=page: page.call("POST", posts, {"text": "On its way"}),
                }
                for what, call in calls.items():
                    figures.setdefault((what, way), []).append(median_ms(call))
        for (what, way), medians in figures.items():
            print(f"{what}, {way}: {statistics.median(medians):.2f} ms")
        response, received = pages["fast path"].call("GET", "/conversations?limit=100")
        print(
            f"100 conversations: {len(received):,} bytes, {response.headers['Content-Encoding'] or 'not packed'}"
        )


if __name__ == "__main__":
    main()
