"""Listening sockets passed to a process as a service manager does (sd_listen_fds(3))."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

FREE = 50  # the passed descriptors overwrite none from here on
START = """
import os, sys
copies, command = sys.argv[1].split(","), sys.argv[2:]
for number, copy in enumerate(copies, 3):
    os.dup2(int(copy), number)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(copies))}
os.execv(command[0], command)
"""


class HasDescriptor(Protocol):
    """A socket, or a file that is mistaken for one."""

    def fileno(self) -> int:
        """Return its descriptor."""


@dataclass(frozen=True)
class HandedOver:
    """A command that starts with these descriptors from 3 on, and its own process id in `LISTEN_PID`.

    Args:
        command: the command to run.
        inherited: descriptors for it; close them once it runs.
    """

    command: list[str]
    inherited: list[int]


def handing_over(handed: Sequence[HasDescriptor], command: list[str]) -> HandedOver:
    """Return a command that starts `command` with these sockets; without sockets, `command` itself."""
    copies = [fcntl.fcntl(each.fileno(), fcntl.F_DUPFD, FREE) for each in handed]
    start = [sys.executable, "-c", START, ",".join(map(str, copies))] if copies else []
    return HandedOver([*start, *command], copies)
