"""Members of the demo's organisation whose browsers are subscribed to push notifications."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio

from deskwire.engine.push import planning, sending
from deskwire.program import outbound
from tests.support.api.browsers import browser, enter, staff
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.push_service import PushBrowser, PushService

PUSHES: Final = "/users/me/pushes"
SUBSCRIPTION: Final = "/users/me/push-subscription"
SETTINGS: Final = "/users/me/notifications"
ALL: Final[dict[str, Any]] = {
    "mine": True,
    "teams": True,
    "unassigned": True,
    "mentions": True,
    "preview": True,
    "sound": True,
    "quietHours": None,
}


@dataclass
class Subscriber:
    """A member with a browser that has a session and a subscription."""

    id: str
    email: str
    http: httpx.AsyncClient
    browser: PushBrowser
    public_key: str

    async def pushes(self) -> list[dict[str, Any]]:
        """Return the member's pushes, the oldest first."""
        answer = await self.http.get(PUSHES, params={"limit": "200"})
        assert answer.status_code == 200, answer.text
        return list(reversed(answer.json()["items"]))

    async def until(self, done: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """Wait until the member's pushes are as wanted, and return them."""
        with trio.fail_after(HANG_TIMEOUT_S):
            while not done(found := await self.pushes()):  # noqa: ASYNC110
                await trio.sleep(0.05)  # poll: there is no notification
        return found

    async def ended(self, count: int = 1) -> list[str]:
        """Wait until this number of pushes has ended, and return the reasons."""
        found = await self.until(
            lambda each: len(each) >= count and all(push["endedAt"] is not None for push in each)
        )
        return [push["reason"] for push in found]


def hurry(monkeypatch: pytest.MonkeyPatch, push: PushService) -> None:
    """Have services that start later poll often, retry at once, and trust the push service."""
    monkeypatch.setattr(planning, "GATHER_MS", 0)
    monkeypatch.setattr(sending, "_POLL_INTERVAL_S", 0.05)
    monkeypatch.setattr(sending, "RETRY_DELAYS_S", (0,))
    monkeypatch.setattr(outbound, "trusted_roots", lambda: push.trust)


@asynccontextmanager
async def signed_in(service: Service, role: str = "agent") -> AsyncIterator[tuple[str, httpx.AsyncClient]]:
    """Yield a member who is notified of everything, and whose browser is signed in."""
    hired = await staff(service, role)
    async with browser(service) as http:
        assert (await enter(http, hired["email"])).status_code == 200
        assert (await http.put(SETTINGS, json=ALL)).status_code == 200
        yield hired["id"], http


@asynccontextmanager
async def subscribed(service: Service, push: PushService, role: str = "agent") -> AsyncIterator[Subscriber]:
    """Yield a member who is notified of everything by push."""
    async with signed_in(service, role) as (user_id, http):
        its = push.browser(role)
        answer = await http.put(SUBSCRIPTION, json=its.subscription)
        assert answer.status_code == 200, answer.text
        yield Subscriber(user_id, f"{role}@example.com", http, its, answer.json()["publicKey"])


@asynccontextmanager
async def pushing(directory: Path, push: PushService) -> AsyncIterator[tuple[Service, Subscriber]]:
    """Run a service with a subscribed agent."""
    async with running(directory) as service, subscribed(service, push) as member:
        yield service, member
