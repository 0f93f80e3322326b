"""The sessions that were looked up: found once, noted once a minute, forgotten with an end (ADR 15)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import trio
from werkzeug.datastructures import Headers

from deskwire.engine.accounts.sessions import (
    BrowserSession,
    SessionLifetime,
    hash_session_secret,
    new_session_secret,
)
from deskwire.engine.core.errors import Unauthenticated, Unavailable
from deskwire.engine.core.values import replace
from deskwire.http.api.auth.sessions import TOUCH_INTERVAL_MS, Sessions, is_own, origin_of
from deskwire.http.api.input.headers import PlainFields

SECRET = new_session_secret()
SESSION = BrowserSession("ses_1", "usr_1", "", 0, 0)
LIFE = SessionLifetime(10 * TOUCH_INTERVAL_MS, 30 * TOUCH_INTERVAL_MS)


@dataclass
class Shelf:
    """A store with one session; reads wait for `gate` once they have looked."""

    found: BrowserSession | None = SESSION
    gate: trio.Event = field(default_factory=trio.Event)
    full: bool = False
    reads: int = 0
    noted: list[int] = field(default_factory=list)

    def session(self, hashed: bytes) -> BrowserSession | None:
        return self.found if hashed == hash_session_secret(SECRET) else None

    def touch_session(self, session_id: str, at: int) -> None:
        assert session_id == SESSION.id
        self.noted.append(at)

    async def read(self, query: Callable[[Any], Any]) -> Any:
        self.reads += 1
        found = query(self)
        await self.gate.wait()
        return found

    async def write(self, job: Callable[[Any], Any]) -> Any:
        await trio.lowlevel.checkpoint()
        if self.full:
            raise Unavailable("The disk is full.", code="storage_failed")
        return job(self)


@dataclass(frozen=True)
class Asking:
    """A page's request."""

    method: str = "GET"
    secure: bool = False
    headers: PlainFields = field(default_factory=lambda: PlainFields({"cookie": [f"deskwire={SECRET}"]}))


def opened(**shelf: Any) -> tuple[Shelf, Sessions]:
    """A store whose reads do not wait, and its sessions."""
    made = Shelf(**shelf)
    made.gate.set()
    return made, Sessions(cast("Any", made), LIFE)


async def test_a_session_is_looked_up_once() -> None:
    shelf, sessions = opened()
    for _ in range(3):
        assert await sessions.of(Asking(), 1) == SESSION
    assert shelf.reads == 1


async def test_session_ended_during_its_look_up_is_not_cached() -> None:
    shelf = Shelf()
    sessions = Sessions(cast("Any", shelf), LIFE)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sessions.of, Asking(), 1)
        await trio.testing.wait_all_tasks_blocked()
        shelf.found = None
        sessions.invalidate()
        shelf.gate.set()
    with pytest.raises(Unauthenticated) as refused:
        await sessions.of(Asking(), 2)
    assert refused.value.reason == "session_ended"


async def test_concurrent_calls_record_the_use_once_a_minute() -> None:
    shelf, sessions = opened()
    for at in (
        TOUCH_INTERVAL_MS - 1,
        TOUCH_INTERVAL_MS,
        TOUCH_INTERVAL_MS,
        2 * TOUCH_INTERVAL_MS - 1,
        2 * TOUCH_INTERVAL_MS,
    ):
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(sessions.of, Asking(), at)
    assert shelf.noted == [TOUCH_INTERVAL_MS, 2 * TOUCH_INTERVAL_MS]


async def test_full_disk_stops_neither_calls_nor_the_sliding_expiry() -> None:
    shelf, sessions = opened(full=True)
    for at in range(0, LIFE.longest, LIFE.idle - 1):
        assert await sessions.of(Asking(), at) is not None
    assert shelf.noted == []


async def test_a_session_slides_up_to_its_longest_time() -> None:
    _, sessions = opened()
    with pytest.raises(Unauthenticated):
        await sessions.of(Asking(), LIFE.idle)
    for at in range(0, LIFE.longest, LIFE.idle - 1):
        session = await sessions.of(Asking(), at)
        assert session is not None
        assert LIFE.ends_at(session) == min(at + LIFE.idle, LIFE.longest)
    with pytest.raises(Unauthenticated):
        await sessions.of(Asking(), LIFE.longest)


async def test_clock_set_back_refuses_no_session() -> None:
    """The later use is replaced once, so that it does not prolong the session."""
    shelf, sessions = opened(
        found=replace(SESSION, created_at=5 * TOUCH_INTERVAL_MS, last_seen_at=5 * TOUCH_INTERVAL_MS)
    )
    for at in (0, 1, TOUCH_INTERVAL_MS - 1):
        session = await sessions.of(Asking(), at)
        assert session is not None
        assert LIFE.ends_at(session) == LIFE.idle
    assert shelf.noted == [0]


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        (None, None),
        ("https://desk.example", "https://desk.example"),
        ("https://Desk.Example:443/", "https://desk.example"),
        ("http://desk.example:80/base", "http://desk.example"),
        ("http://desk.example:443", "http://desk.example:443"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_the_origin_of_a_url_is_as_browsers_write_it(url: str | None, origin: str | None) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    "origin", ["null", "", "http://", "https://x", "http://y", "http://x:80", "HTTP://X", "None"]
)
def test_only_the_exact_origin_is_our_own(origin: str) -> None:
    here = Headers({"Host": "X"})
    assert is_own("http://x", here, None, secure=False)
    assert not is_own(origin, here, None, secure=False)
    assert not is_own("http://x", Headers([("Host", "x"), ("Host", "x")]), None, secure=False)
    assert not is_own("None", Headers(), None, secure=False)
