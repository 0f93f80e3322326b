"""A writer: sends one request after the other in conversations that all writers share, and records each outcome."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import httpx
import orjson
import trio

from tests.crash.calls import note, request_of
from tests.crash.ledger import Ask, Kind, Ledger

CONVERSATIONS: Final = 24
"""Number of conversations that the writers share; more are created only until there are this many."""
_PATIENCE_S: Final = 240.0
"""Timeout of a request with all its attempts."""
_ATTEMPT_S: Final = 6.0
"""Timeout of one attempt before the request is sent again."""
_KNOCK_S: Final = 0.1
_KEYED: Final = 0.8
_AGAIN: Final = 0.1
"""Share of requests with a key that are sent again although they were answered."""
_KINDS: Final[dict[Kind, float]] = {"message": 0.8, "patch": 0.1, "close": 0.06, "reopen": 0.04}
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout)
_LATER: Final = (429, 503)


class Writer:
    """A writer that runs until `stopping` returns True.

    Args:
        shared: ids of the conversations; the writer adds those that it creates.
        stopping: returns whether to send no new request.
        pause_s: the pause between two requests.
    """

    def __init__(
        self,
        url: str,
        key: str,
        name: str,
        chance: random.Random,
        ledger: Ledger,
        shared: list[str],
        stopping: Callable[[], bool],
        pause_s: float = 0.0,
    ) -> None:
        self._url = f"{url}/v3/s2s/conversations"
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._name = name
        self._chance = chance
        self._ledger = ledger
        self._shared = shared
        self._stopping = stopping
        self._pause_s = pause_s
        self._asked = 0

    async def run(self) -> None:
        """Send one request after the other."""
        async with httpx.AsyncClient(headers=self._headers, timeout=_ATTEMPT_S, trust_env=False) as http:
            while not self._stopping():
                ask = self.next()
                self._ledger.asks.append(ask)
                await self._settle(http, ask)
                if ask.kind == "create" and ask.outcome == "acknowledged":
                    ask.conversation = str(orjson.loads(ask.answer)["id"])
                    self._shared.append(ask.conversation)
                await trio.sleep(self._pause_s)  # a load of this strength

    def next(self) -> Ask:
        """Return the next request, which is not yet sent."""
        self._asked += 1
        mark = f"{self._name}-{self._asked}"
        kind: Kind = "create"
        if len(self._shared) >= CONVERSATIONS:
            (kind,) = self._chance.choices(list(_KINDS), list(_KINDS.values()))
        keyed = kind == "create" or (kind == "message" and self._chance.random() < _KEYED)
        conversation = None if kind == "create" else self._chance.choice(self._shared)
        return Ask(
            kind, mark, f"key-{mark}" if keyed else None, conversation, client=self._name, sent_at=_now()
        )

    async def _settle(self, http: httpx.AsyncClient, ask: Ask) -> None:
        """Send a request until its outcome is known, or cannot be known."""
        method, path, body = request_of(ask, self._chance)
        with trio.move_on_after(_PATIENCE_S):
            answer = await self._sent(http, method, path, body, ask.key)
            ask.settled_at = _now()
            note(ask, answer)
            if ask.key and ask.answer and self._chance.random() < _AGAIN:
                again = await self._sent(http, method, path, body, ask.key)
                ask.replays.append(b"" if again is None else again.content)

    async def _sent(
        self, http: httpx.AsyncClient, method: str, path: str, body: Any, key: str | None
    ) -> httpx.Response | None:
        """Return the answer; None if it got lost and the request must not be sent again."""
        headers = {"Idempotency-Key": key} if key else {}
        content = b"" if body is None else orjson.dumps(body)
        while True:
            try:
                answer = await http.request(method, f"{self._url}{path}", headers=headers, content=content)
            except _NOT_SENT:
                pass
            except httpx.TransportError:
                if key is None:
                    return None
            else:
                if b"outcome_unknown" in answer.content and key is None:
                    return None
                if answer.status_code not in _LATER and b"idempotency_in_progress" not in answer.content:
                    return answer
            await trio.sleep(_KNOCK_S)  # the service is down: poll until it is back


def _now() -> float:
    return trio.current_time()
