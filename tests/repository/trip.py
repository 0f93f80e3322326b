"""The trip of a message through the code: calls, files, changes of file and crossings of layers, as recorded."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Final

import deskwire

CEILINGS: Final = "tests/repository/trip_ceilings.json"

_FOLDERS: Final = tuple(deskwire.__path__)
_LAYERS: Final = ("engine", "http", "storage")
_INLINED: Final = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})
"""Comprehensions: functions up to Python 3.11, and parts of their functions from 3.12 on (PEP 709)."""


@contextmanager
def recorded(last: FunctionType) -> Iterator[list[CodeType]]:
    """Record the functions of `deskwire` that this thread calls, in their order, until `last` returns.

    A coroutine counts once, however often it is resumed; one that is running already counts when it is next resumed.
    """
    called: list[CodeType] = []
    entered: set[FrameType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "return" and code is last.__code__:
            sys.setprofile(None)
        elif event == "call" and frame not in entered and _counts(code):
            entered.add(frame)
            called.append(code)

    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)
        entered.clear()


def _counts(code: CodeType) -> bool:
    return code.co_filename.startswith(_FOLDERS) and code.co_name not in _INLINED


def figures(called: Sequence[CodeType]) -> dict[str, int]:
    """Return the counts of a recorded trip."""
    files = [code.co_filename for code in called]
    layers = [_layer(file) for file in files]
    return {
        "calls": len(called),
        "files": len(set(files)),
        "changes of file": sum(before != after for before, after in pairwise(files)),
        "crossings of layers": sum(before != after for before, after in pairwise(layers)),
    }


def lines(called: Sequence[CodeType]) -> Iterator[str]:
    """Yield each call of a trip with its file, for a reader who looks for a shorter way."""
    for code in called:
        yield f"{_within(code.co_filename)}: {code.co_qualname}"


def _layer(file: str) -> str:
    """Return the layer of a file; `program` for the packages that are in none."""
    first = _within(file).parts[0]
    return first if first in _LAYERS else "program"


def _within(file: str) -> Path:
    """Return a file's path in the package `deskwire`."""
    folder = next(each for each in _FOLDERS if file.startswith(each))
    return Path(file).relative_to(folder)
