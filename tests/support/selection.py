"""Selects the tests that need only their own process: no other process, and no socket that accepts connections.

They are marked `unit` at collection, by names in their code and fixtures; a test with the mark that starts something
fails.
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
"""Names that every test with a process or a listener refers to, itself or through shared code."""
STARTS: Final = frozenset({"os.fork", "os.posix_spawn", "socket.bind", "subprocess.Popen"})
"""Python's audit events for a start of one."""

_watched: list[list[str]] = []


def is_unit(item: pytest.Item) -> bool:
    """Return whether neither the test nor one of its fixtures starts anything."""
    if not isinstance(item, pytest.Function):
        return False
    fixtures = [each for named in item._fixtureinfo.name2fixturedefs.values() for each in named]
    return not any(comes_to_a_start(each) for each in (item.function, *(each.func for each in fixtures)))


@cache
def comes_to_a_start(called: Any) -> bool:
    """Return whether this function of the tests can reach the name of a starter."""
    return any(not STARTERS.isdisjoint((*code.co_names, *code.co_varnames)) for code in _reached(called))


def _reached(called: Any) -> Iterator[CodeType]:
    """Yield the code of every function of the tests that this one refers to, directly or indirectly."""
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
    """Return the function inside decorators of Hypothesis, of the standard library, and of descriptors."""
    inner = getattr(called, "hypothesis", None)
    called = called if inner is None else inner.inner_test
    called = getattr(called, "fget", None) or getattr(called, "__func__", called)
    return unwrap(called)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code and all code nested in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def watch_starts() -> None:
    """Record from now on what this process starts."""

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
