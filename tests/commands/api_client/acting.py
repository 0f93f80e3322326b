"""Commands about a project, as an operator types them beside a running service."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import trio

from tests.support.api.service import Service
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import environment


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of a command that has ended: its exit status, stdout and stderr."""

    status: int
    printed: str
    said: str

    @property
    def document(self) -> Any:
        """The printed JSON document."""
        assert self.status == 0, self.said
        return json.loads(self.printed)


async def deskwire(service: Service, *arguments: str, key: str | None = None) -> Outcome:
    """Run a command in a process of its own, with the credentials in its environment."""
    variables = {"DESKWIRE_URL": service.url, "DESKWIRE_KEY": key or service.demo["serverKey"]}
    with trio.fail_after(HANG_TIMEOUT_S):
        done = await trio.run_process(
            [sys.executable, "-m", "deskwire", *arguments],
            env={**environment(), **variables},
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())
