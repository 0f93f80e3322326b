"""A layer under a process's calls of libc: it records them, fails them, and moves the clock (`shim.c`). Linux with a C compiler."""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_SOURCE: Final = Path(__file__).with_name("shim.c")
_CONTROL: Final = struct.Struct("<qii")
_HEAD: Final = struct.Struct("<cqqI")


def missing() -> str:
    """Return why there can be no shim here; empty if there can."""
    if sys.platform != "linux":
        return "LD_PRELOAD and /proc are Linux's"
    return "" if shutil.which("cc") else "there is no C compiler"


@cache
def _built(folder: Path) -> Path:
    library = folder / "shim.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return library


@dataclass(frozen=True, slots=True)
class Op:
    """A recorded call, or a recorded sending of bytes.

    Args:
        kind: C(reate), D(irectory made), W(rite), T(runcate), S(ync), R(ename), U(nlink), or N(ews sent out).
        inode: the inode of the file or folder.
        at: the offset of a write, or the size after a truncation.
        data: the bytes that were written or sent, or the path; for a rename both paths, separated by a zero byte.
    """

    kind: str
    inode: int
    at: int
    data: bytes


class Shim:
    """The layer for processes that are started with its environment.

    Args:
        scratch: the folder for its own files; not below `root`.
        root: the watched tree.
        recording: whether calls are recorded.
    """

    def __init__(self, scratch: Path, root: Path, *, recording: bool = False) -> None:
        root.mkdir(exist_ok=True)
        self.root = root.resolve()
        self._log = scratch / "shim.calls"
        path = scratch / "shim.control"
        path.write_bytes(bytes(_CONTROL.size))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _CONTROL.size)
        self.environ = {
            "LD_PRELOAD": str(_built(scratch)),
            "SHIM_ROOT": str(self.root),
            "SHIM_CONTROL": str(path),
            **({"SHIM_LOG": str(self._log)} if recording else {}),
        }
        self._clock_s, self._write_errno, self._sync_errno = 0.0, 0, 0

    def set_clock(self, ahead_s: float) -> None:
        """Set the wall clock ahead by an offset; monotonic clocks are not changed."""
        self._clock_s = ahead_s
        self._set()

    def fail(self, *, writes: int = 0, syncs: int = 0) -> None:
        """Make writes and new names, or syncs, fail with these errors (errno); 0 lets them succeed."""
        self._write_errno, self._sync_errno = writes, syncs
        self._set()

    def _set(self) -> None:
        self._map[:] = _CONTROL.pack(round(self._clock_s * 1e9), self._write_errno, self._sync_errno)

    def ops(self) -> Iterator[Op]:
        """Return the recorded operations."""
        data = memoryview(self._log.read_bytes())
        at = 0
        while at + _HEAD.size <= len(data):
            kind, inode, place, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            if at + length > len(data):
                return  # the process was killed in the middle of it
            yield Op(kind.decode(), inode, place, bytes(data[at : at + length]))
            at += length


def shim_environment_works(scratch: Path) -> bool:
    """Return whether the layer works with this interpreter; it does not if that is linked statically."""
    shim = Shim(scratch, scratch / "tried", recording=True)
    code = f"open({str(shim.root / 'file')!r}, 'w').write('x')"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **shim.environ}, check=True)
    return [op.kind for op in shim.ops() if op.kind != "N"] == ["C", "W"]
