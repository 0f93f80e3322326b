"""Which tests need nothing but the process that they run in: no process besides, and no socket that anybody may call.

They are marked `unit` when they are collected, by what their code and their fixtures' names; a test that was taken for one
and starts something all the same fails.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from inspect import unwrap
from types import CodeType, FunctionType
from typing import Any, Final

import pytest

STARTERS: Final = frozenset(
    {
        "Popen",
        "Receiver",
        "bind",
        "create_server",
        "fork",
        "open_process",
        "open_tcp_listeners",
        "program",
        "run_process",
        "running",
        "serve_tcp",
        "subprocess",
    }
)
"""Names without which no test comes to a process or a listener, itself or through what tests share."""
STARTS: Final = frozenset({"os.fork", "os.posix_spawn", "socket.bind", "subprocess.Popen"})
"""What Python tells its auditors when one is started."""

_watched: list[list[str]] = []


def is_unit(item: pytest.Item) -> bool:
    """Whether neither the test nor one of its fixtures starts anything."""
    if not isinstance(item, pytest.Function):
        return False
    fixtures = [each for named in item._fixtureinfo.name2fixturedefs.values() for each in named]
    return not any(comes_to_a_start(each) for each in (item.function, *(each.func for each in fixtures)))


@cache
def comes_to_a_start(called: Any) -> bool:
    """Whether a name of a starter can be reached from this function of the tests."""
    return any(not STARTERS.isdisjoint((*code.co_names, *code.co_varnames)) for code in _reached(called))


def _reached(called: Any) -> Iterator[CodeType]:
    """The code of everything of the tests that this names, and that those name, and so on."""
    known: set[int] = set()
    ahead: list[Any] = [called]
    while ahead:
        each = _undressed(ahead.pop())
        if id(each) in known or not (getattr(each, "__module__", None) or "").startswith("tests."):
            continue
        known.add(id(each))
        if isinstance(each, type):
            ahead += vars(each).values()
        elif isinstance(each, FunctionType):
            for code in _codes(each.__code__):
                yield code
                ahead += [each.__globals__[name] for name in code.co_names if name in each.__globals__]


def _undressed(called: Any) -> Any:
    """What is behind decorators: those of Hypothesis, of the standard library, and of descriptors."""
    inner = getattr(called, "hypothesis", None)
    called = called if inner is None else inner.inner_test
    called = getattr(called, "fget", None) or getattr(called, "__func__", called)
    return unwrap(called)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code and what is nested in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def watch_starts() -> None:
    """Note from now on what this process starts."""

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event in STARTS:
            for started in _watched:
                started.append(f"{event}{arguments}")

    sys.addaudithook(note)


@contextmanager
def nothing_started() -> Iterator[None]:
    """Fail if the block starts a process or binds a socket."""
    started: list[str] = []
    _watched.append(started)
    try:
        yield
    finally:
        _watched.remove(started)
    assert not started, f"a test that was taken for a unit starts something: {started[:3]}"
