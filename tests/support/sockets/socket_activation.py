"""Listening sockets handed over to a process as a service manager does it (sd_listen_fds(3))."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

FREE = 50  # from here on no descriptor is overwritten by those that are handed over
START = """
import os, sys
copies, command = sys.argv[1].split(","), sys.argv[2:]
for number, copy in enumerate(copies, 3):
    os.dup2(int(copy), number)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(copies))}
os.execv(command[0], command)
"""


class HasDescriptor(Protocol):
    """A socket, or what is mistaken for one."""

    def fileno(self) -> int:
        """Its descriptor."""


@dataclass(frozen=True)
class HandedOver:
    """How to start a command with these as its descriptors from 3 on, and its own id in `LISTEN_PID`.

    Args:
        command: what to run.
        inherited: descriptors for it, to be closed when it runs.
    """

    command: list[str]
    inherited: list[int]


def handing_over(handed: Sequence[HasDescriptor], command: list[str]) -> HandedOver:
    """A command that starts `command` with what is handed over; nothing means that it starts as it is."""
    copies = [fcntl.fcntl(each.fileno(), fcntl.F_DUPFD, FREE) for each in handed]
    start = [sys.executable, "-c", START, ",".join(map(str, copies))] if copies else []
    return HandedOver([*start, *command], copies)
