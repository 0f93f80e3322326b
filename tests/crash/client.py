"""A client that survives crashes of the server: it sends requests and records each outcome in the ledger."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import httpx
import orjson
import trio

from deskwire.commands.api_client.service import SinglePieceBody
from tests.crash.calls import note, request_of
from tests.crash.ledger import Ask, Kind, Ledger

AWAY_S: Final = 300.0
"""Timeout for a service that is down; a start takes seconds, and longer on a busy machine."""
_KNOCK_S: Final = 0.05
_KEYED: Final = 0.5
"""Share of creations and messages that have an Idempotency-Key."""
_AGAIN: Final = 0.1
"""The share of answered requests that are sent again."""
_KINDS: Final[dict[Kind, float]] = {
    "message": 0.75,
    "patch": 0.1,
    "close": 0.07,
    "reopen": 0.04,
    "create": 0.04,
}
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout)


class Client:
    """A client that writes to one conversation of its own at a time until `stopping` returns True.

    Args:
        name: the prefix of its marks.
        stopping: returns whether to send no new request.
    """

    def __init__(
        self,
        url: str,
        key: str,
        name: str,
        chance: random.Random,
        ledger: Ledger,
        stopping: Callable[[], bool],
    ) -> None:
        self._http = httpx.AsyncClient(
            base_url=f"{url}/v3/s2s",
            headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
            timeout=AWAY_S,
            trust_env=False,
        )
        self._name = name
        self._chance = chance
        self._ledger = ledger
        self._stopping = stopping
        self._asked = 0
        self._conversation: str | None = None

    async def run(self) -> None:
        """Send one request after the other."""
        async with self._http:
            while not self._stopping():
                ask = self._next()
                self._ledger.asks.append(ask)
                await self._settle(ask)
                if ask.outcome == "acknowledged" and ask.kind == "create":
                    self._conversation = ask.conversation = str(orjson.loads(ask.answer)["id"])

    def _next(self) -> Ask:
        self._asked += 1
        mark = f"{self._name}-{self._asked}"
        kind: Kind = "create"
        if self._conversation is not None:
            (kind,) = self._chance.choices(list(_KINDS), list(_KINDS.values()))
        keyed = kind in ("create", "message") and self._chance.random() < _KEYED
        conversation = None if kind == "create" else self._conversation
        return Ask(kind, mark, f"key-{mark}" if keyed else None, conversation)

    async def _settle(self, ask: Ask) -> None:
        """Send a request until its outcome is known, or cannot be known."""
        method, path, body = request_of(ask, self._chance)
        answer = await self._sent(method, path, body, ask.key)
        note(ask, answer)
        if ask.key and ask.answer and self._chance.random() < _AGAIN:
            again = await self._sent(method, path, body, ask.key)
            ask.replays.append(b"" if again is None else again.content)

    async def _sent(self, method: str, path: str, body: Any, key: str | None) -> httpx.Response | None:
        """Return the answer; None if it got lost and the request must not be sent again."""
        headers = {"Idempotency-Key": key} if key else {}
        content = b"" if body is None else orjson.dumps(body)
        with trio.fail_after(AWAY_S):
            while True:
                try:
                    request = self._http.build_request(
                        method,
                        f"/conversations{path}",
                        headers={"Content-Length": str(len(content)), **headers},
                    )
                    request.stream = SinglePieceBody(content)
                    answer = await self._http.send(request)
                except _NOT_SENT:
                    pass
                except httpx.TransportError:
                    if key is None:
                        return None
                else:
                    if not _comes_later(answer):
                        return answer
                await trio.sleep(_KNOCK_S)  # the service is down: poll until it is back


def _comes_later(answer: httpx.Response) -> bool:
    """Return whether the service has certainly done nothing, so that the request may be sent again."""
    return answer.status_code in (429, 503) or b"idempotency_in_progress" in answer.content
