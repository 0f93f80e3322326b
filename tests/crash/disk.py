"""A simulated disk: the possible states of a file tree after a loss of power, derived from the recorded calls.

It guarantees only what POSIX does. A file's bytes are safe once the file was synced, a name once its folder was; syncing
a file does not make its name safe. Unsynced data may survive, be lost, or survive in part: writes are torn into sectors
that survive independently, in any order. Names in one folder survive in order, as in journals; a rename within a folder
is one change, a rename between two folders is a change of each.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.crash.shim import Op

SECTORS: Final = (512, 4096)
Names = dict[str, "File | Folder"]
Change = tuple[tuple[str, "File | Folder | None"], ...]
"""Names that change together; None removes a name."""


@dataclass(slots=True, eq=False)
class File:
    """A file: its bytes on the disk, and later writes as (offset, bytes), or (size, None) for a truncation."""

    safe: bytearray = field(default_factory=bytearray)
    unsafe: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        """Move all writes to the disk."""
        for at, data in self.unsafe:
            _put(self.safe, at, data)
        self.unsafe.clear()


@dataclass(slots=True, eq=False)
class Folder:
    """A folder: its names as the process sees them, those on the disk, and the changes in between."""

    now: Names = field(default_factory=dict)
    safe: Names = field(default_factory=dict)
    unsafe: list[Change] = field(default_factory=list)

    def change(self, *names: tuple[str, File | Folder | None]) -> None:
        """Change names atomically."""
        _rename(self.now, names)
        self.unsafe.append(names)

    def sync(self) -> None:
        """Move all changes of names to the disk."""
        for change in self.unsafe:
            _rename(self.safe, change)
        self.unsafe.clear()


@dataclass(frozen=True, slots=True)
class Loss:
    """The unsynced data that a loss of power spares.

    Args:
        sector: the number of bytes that survive together.
        spares: returns whether a sector survives; called for each.
        names: returns how many of a folder's changes survive.
    """

    sector: int
    spares: Callable[[], bool]
    names: Callable[[int], int]


NOTHING_SPARED: Final = Loss(4096, lambda: False, lambda _: 0)
ALL_SPARED: Final = Loss(4096, lambda: True, lambda changes: changes)
NAMES_SPARED: Final = Loss(4096, lambda: False, lambda changes: changes)
BYTES_SPARED: Final = Loss(4096, lambda: True, lambda _: 0)


def torn(chance: random.Random) -> Loss:
    """Return a loss in which random parts survive."""
    share = chance.choice((0.1, 0.5, 0.9))
    return Loss(
        chance.choice(SECTORS), lambda: chance.random() < share, lambda changes: chance.randint(0, changes)
    )


class Disk:
    """The tree below `root`; its initial files are on the disk."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._nodes: dict[int, File | Folder] = {}
        self._top = self._folder(root)

    def _folder(self, path: Path) -> Folder:
        names: Names = {}
        for each in path.iterdir():
            if each.is_dir():
                names[each.name] = self._folder(each)
            else:
                names[each.name] = self._nodes[each.stat().st_ino] = File(bytearray(each.read_bytes()))
        folder = self._nodes[path.stat().st_ino] = Folder(dict(names), names)
        return folder

    def apply(self, op: Op) -> None:
        """Apply a recorded call."""
        match op.kind:
            case "C" | "D":
                node = self._nodes[op.inode] = File() if op.kind == "C" else Folder()
                folder, name = self._place(op.data)
                folder.change((name, node))
            case "W" | "T":
                self._file(op.inode).unsafe.append((op.at, op.data if op.kind == "W" else None))
            case "S":
                self._nodes[op.inode].sync()
            case "U":
                folder, name = self._place(op.data)
                folder.change((name, None))
            case "R":
                self._rename(*op.data.split(b"\0"))

    def _file(self, inode: int) -> File:
        node = self._nodes[inode]
        assert isinstance(node, File)
        return node

    def _rename(self, old: bytes, new: bytes) -> None:
        (source, before), (target, after) = self._place(old), self._place(new)
        node = source.now[before]
        if source is target:
            source.change((before, None), (after, node))
        else:
            target.change((after, node))
            source.change((before, None))

    def _place(self, path: bytes) -> tuple[Folder, str]:
        *folders, name = path.decode().removeprefix(f"{self._root}/").split("/")
        at = self._top
        for each in folders:
            found = at.now[each]
            assert isinstance(found, Folder)
            at = found
        return at, name

    def survivors(self, target: Path, loss: Loss) -> None:
        """Write the state after a loss into a new folder."""
        _write_folder(self._top, target, loss)


def _write_folder(folder: Folder, target: Path, loss: Loss) -> None:
    target.mkdir(mode=0o700)
    names = dict(folder.safe)
    for change in folder.unsafe[: loss.names(len(folder.unsafe))]:
        _rename(names, change)
    for name, node in names.items():
        if isinstance(node, Folder):
            _write_folder(node, target / name, loss)
        elif not name.endswith(("-shm", ".sock")):  # the -shm file is not read after a loss
            (target / name).write_bytes(_survived(node, loss))
            (target / name).chmod(0o600)


def _survived(file: File, loss: Loss) -> bytes:
    content = bytearray(file.safe)
    for at, data in file.unsafe:
        if data is None:
            if loss.spares():
                _put(content, at, None)
            continue
        for start in _pieces(at, len(data), loss.sector):
            if loss.spares():
                end = min(at + len(data), (start // loss.sector + 1) * loss.sector)
                _put(content, start, data[start - at : end - at])
    return bytes(content)


def _pieces(at: int, length: int, sector: int) -> Sequence[int]:
    """Return the offsets at which the parts of a write in separate sectors begin."""
    return [at, *range((at // sector + 1) * sector, at + length, sector)] if length else []


def _put(content: bytearray, at: int, data: bytes | None) -> None:
    size = at if data is None else at + len(data)
    if data is None:
        del content[at:]
    if len(content) < size:
        content.extend(bytes(size - len(content)))
    if data is not None:
        content[at : at + len(data)] = data


def _rename(names: Names, change: Change) -> None:
    for name, node in change:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node
