"""Agents that hold and schedule messages and cancel some while their server is killed, and the check of each message's fate.

A message that was acknowledged as held is either sent once or, if cancelled, a draft again: never both, never twice,
never neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx
import trio

MARK: Final = "-held-"
"""Contained in the texts of held messages, and in the user ids of their contacts."""
_PAUSE_S: Final = 0.05
"""Pause of the agent between two messages: a user may hold a hundred."""
_AHEAD_S: Final = 1.5
"""Time from the request to the time for which a message is scheduled."""
_TAKEN_BACK: Final = 3
"""One in this many messages is cancelled."""


@dataclass
class HeldLedger:
    """The texts of messages that were acknowledged as held, and of those acknowledged as cancelled.

    Args:
        unsure: texts whose cancellation was requested but not answered.
    """

    held: set[str] = field(default_factory=set)
    back: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)


async def hold_one(
    http: httpx.AsyncClient,
    conversation: str,
    text: str,
    ledger: HeldLedger,
    *,
    back: bool,
    scheduled: bool = False,
) -> None:
    """Hold a message for a second, or schedule it; cancel it at once if `back`. Raises httpx.TransportError if the server is down."""
    path = f"/conversations/{conversation}/messages"
    at = (datetime.now(UTC) + timedelta(seconds=_AHEAD_S)).isoformat()
    answer = await http.post(
        path, json={"text": text, **({"sendAt": at} if scheduled else {"holdSeconds": 1})}
    )
    if scheduled and answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY:
        return  # the request was under way for longer
    if answer.status_code == httpx.codes.CONFLICT:
        return  # a hundred are held, because the sender was down
    assert answer.status_code == httpx.codes.OK, answer.text
    ledger.held.add(text)
    if back:
        ledger.unsure.add(text)
        answer = await http.delete(f"/held-messages/{answer.json()['id']}")
        assert answer.status_code in (httpx.codes.OK, httpx.codes.CONFLICT), answer.text
        ledger.unsure.discard(text)
        if answer.status_code == httpx.codes.OK:
            ledger.back.add(text)


async def hold_often(
    http: httpx.AsyncClient, conversation: str, name: str, ledger: HeldLedger, stopping: Callable[[], bool]
) -> None:
    """Hold one message after the other, over all crashes, until `stopping` is true. Texts are one word each."""
    number = 0
    while not stopping():
        try:
            text, back = f"{name}{MARK}{number}.", number % _TAKEN_BACK == 0
            await hold_one(http, conversation, text, ledger, back=back, scheduled=number % 2 == 1)
        except httpx.TransportError:
            pass  # the server is down: poll until it is back
        number += 1
        await trio.sleep(_PAUSE_S)  # the agent's own pace


async def settled(http: httpx.AsyncClient, patience_s: float) -> list[str]:
    """Wait until no message is held, or for the timeout; return the texts of messages that are still held."""
    held: list[Any] = []
    with trio.move_on_after(patience_s):
        while held := (await http.get("/held-messages")).json()["items"]:  # noqa: ASYNC110
            await trio.sleep(_PAUSE_S)  # poll: there is no notification
    return [each["text"] for each in held]


async def drafted(http: httpx.AsyncClient, conversation: str) -> list[str]:
    """Return the words of the agent's draft."""
    draft: Any = (await http.get(f"/conversations/{conversation}/drafts")).json()["reply"]
    return draft["text"].split() if draft else []


def became(ledger: HeldLedger, sent: Counter[str], drafts: Counter[str], waiting: list[str]) -> Iterator[str]:
    """Yield a sentence for each message that was lost, was sent twice, or was sent although it is a draft."""
    for text, count in (sent + drafts).items():
        if count > 1:
            yield f"{text} was sent {sent[text]} times and is a draft {drafts[text]} times"
    for text in sorted(waiting):
        yield f"{text} is held for longer than it should be"
    for text in sorted(ledger.back - drafts.keys()):
        yield f"{text} was acknowledged as taken back, and is no draft"
    for text in sorted(ledger.held - ledger.back - ledger.unsure - sent.keys()):
        yield f"{text} was acknowledged as held, and was not sent"
    for text in sorted(ledger.held - sent.keys() - drafts.keys()):
        yield f"{text} was acknowledged as held, and is neither sent nor a draft"
