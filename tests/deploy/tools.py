"""The programs and libraries that read the deployment files; some are installed only by `make containers`."""

from __future__ import annotations

import platform
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

PROGRAMS: Final = {
    "caddy": "the group `containers`",
    "hadolint": "the group `containers`",
    "litestream": "the group `containers`",
    "docker": "the system, whose daemon need not run",
    "kubectl": "the system",
    "promtool": "Debian's package prometheus",
    "amtool": "Debian's package prometheus-alertmanager",
}
"""The source of each program."""
LIBRARIES: Final = {
    "compose_spec": "the group `containers`",
    "helm_python": "the group `containers`, which has it for x86_64 only",
    "kubernetes_validate": "the group `containers`",
}
"""The source of each library."""
OPTIONAL: Final = {"amtool", "docker", "kubectl"} | (
    {"helm_python"} if platform.machine() != "x86_64" else set()
)
"""Tools that `make containers` can do without: other tests check the same files, or this machine has no package."""


def program(name: str) -> str | None:
    """Return the path of a program, searched beside Python first; None if it is not installed."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


def missing() -> list[str]:
    """Return the missing programs and libraries with their sources."""
    lacking = {**{name: of for name, of in PROGRAMS.items() if program(name) is None}}
    lacking |= {name: of for name, of in LIBRARIES.items() if find_spec(name) is None}
    return [f"needs {name}, of {of}" for name, of in lacking.items() if name not in OPTIONAL]


def needs(name: str) -> pytest.MarkDecorator:
    """Return the mark that skips a test if a program or library is missing."""
    here = find_spec(name) if name in LIBRARIES else program(name)
    return pytest.mark.skipif(here is None, reason=f"needs {name}, of {({**PROGRAMS, **LIBRARIES})[name]}")
