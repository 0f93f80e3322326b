"""An S3 for tests: moto's server in an environment of its own, because its libraries differ (`make .venv-s3/.stamp`)."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from typing import Final

import httpx

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.root import ROOT

MOTO: Final = ROOT / ".venv-s3" / ("Scripts" if os.name == "nt" else "bin") / "moto_server"
MISSING: Final = "needs the S3 of `make .venv-s3/.stamp`"


def has_s3() -> bool:
    """Return whether the environment with the server exists."""
    return MOTO.exists()


@contextmanager
def s3_server(directory: Path) -> Iterator[str]:
    """Yield the address of a server with a bucket named `uploads`."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with (directory / "moto.log").open("wb") as log:
        server = subprocess.Popen(
            [MOTO, "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
    try:
        _wait_for(address, server)
        httpx.put(f"{address}/uploads", headers={"Authorization": _SIGNED}).raise_for_status()
        yield address
    finally:
        server.kill()
        server.wait()


_SIGNED: Final = (
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
)
"""Tells the server which of Amazon's services is addressed; it checks no signature."""


def _wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + HANG_TIMEOUT_S
    while True:
        try:
            httpx.get(f"{address}/moto-api/data.json").raise_for_status()
        except httpx.HTTPError:
            assert server.poll() is None, "moto's server has ended"
            assert time.monotonic() < end, "moto's server did not start"
            time.sleep(0.05)  # poll: there is no notification
        else:
            return
