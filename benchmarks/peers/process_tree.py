"""The processor time and memory of a server with all its processes; Linux only."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_QUIET_SHARE: Final = 0.1
"""Of a core, below which a server has nothing left to do."""
_LOOKS, _LOOK_S = 5, 0.04
_PSS: Final = re.compile(r"^Pss: +(\d+) kB", re.MULTILINE)


def tree(roots: Iterable[int]) -> list[int]:
    """Return the ids of these processes and of all below them."""
    children = dict[int, list[int]]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # ended in the meantime
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    return list(_below(roots, children))


def _below(roots: Iterable[int], children: dict[int, list[int]]) -> Iterator[int]:
    for root in roots:
        yield root
        yield from _below(children.get(root, ()), children)


def cpu_s(roots: Iterable[int]) -> float:
    """Return the processor time in seconds of these trees, including children that have ended and were waited for."""
    ticks = 0
    for process in tree(roots):
        with suppress(OSError):
            ticks += sum(
                map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15])
            )
    return ticks / os.sysconf("SC_CLK_TCK")


def pss_mb(roots: Iterable[int]) -> float:
    """Return the memory of these trees in MB (10^6 bytes), of shared pages each process's share."""
    kib = 0
    for process in tree(roots):
        with suppress(OSError):
            found = _PSS.search(Path(f"/proc/{process}/smaps_rollup").read_text())
            kib += int(found[1]) if found else 0
    return kib * 1024 / 1e6


def wait_until_quiet(roots: Iterable[int], give_up_s: float = 300.0) -> None:
    """Wait until a server has worked off what others have abandoned. Raises TimeoutError if it does not."""
    chosen, end = list(roots), time.monotonic() + give_up_s
    while time.monotonic() < end:
        before, idle = cpu_s(chosen), True
        for _ in range(_LOOKS):
            time.sleep(_LOOK_S)
            idle = idle and not _runnable(chosen)
        if idle and cpu_s(chosen) - before <= _QUIET_SHARE * _LOOKS * _LOOK_S:
            return
    raise TimeoutError(f"the server is busy {give_up_s:g} s after the last request")


def _runnable(roots: Iterable[int]) -> bool:
    """Return whether a thread of these trees runs, waits for a processor or for the disk.

    On a busy machine a server uses little processor time although it has much to do.
    """
    for process in tree(roots):
        for stat in Path(f"/proc/{process}/task").glob("*/stat"):
            with suppress(OSError):
                if stat.read_text().rpartition(")")[2].split()[0] in "RD":
                    return True
    return False
