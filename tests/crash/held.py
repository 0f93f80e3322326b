"""Agents that hold messages and take some back while their server is killed, and the judge of the fate of each message.

A message that was acknowledged as held is sent once, or is a draft again once it was taken back: never both, never twice,
never neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
import trio

MARK: Final = "-held-"
"""Is in the texts of held messages, and in the user ids of the contacts that they are for."""
_PAUSE_S: Final = 0.05
"""The agent's own pace: a user may hold a hundred messages."""
_TAKEN_BACK: Final = 3
"""One in this number of messages is taken back."""


@dataclass
class HeldLedger:
    """The texts of messages that were acknowledged as held, and of those that were acknowledged as taken back.

    Args:
        unsure: those that were to be taken back, with no answer so far.
    """

    held: set[str] = field(default_factory=set)
    back: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)


async def hold_one(
    http: httpx.AsyncClient, conversation: str, text: str, ledger: HeldLedger, *, back: bool
) -> None:
    """Hold a message for a second, and take it `back` at once. Raises httpx.TransportError if the server is gone."""
    path = f"/conversations/{conversation}/messages"
    answer = await http.post(path, json={"text": text, "holdSeconds": 1})
    if answer.status_code == httpx.codes.CONFLICT:
        return  # a hundred wait, because the sender was down
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
            await hold_one(
                http, conversation, f"{name}{MARK}{number}.", ledger, back=number % _TAKEN_BACK == 0
            )
        except httpx.TransportError:
            pass  # the server is away: nothing announces that it is back
        number += 1
        await trio.sleep(_PAUSE_S)  # the agent's own pace


async def settled(http: httpx.AsyncClient, patience_s: float) -> list[str]:
    """Return when no message is held, or after some patience; the texts of those that still are."""
    held: list[Any] = []
    with trio.move_on_after(patience_s):
        while held := (await http.get("/held-messages")).json()["items"]:  # noqa: ASYNC110
            await trio.sleep(_PAUSE_S)  # looks again: nothing announces it
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
