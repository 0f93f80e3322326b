"""The search as one types, through the wire."""

from __future__ import annotations

from typing import Any

import trio

from tests.support.api.service import Service
from tests.support.sockets.server_process import LOOK_S


async def searched(service: Service, q: str, **params: str) -> dict[str, Any]:
    """The answer to a search, once the index knows all that is stored."""
    with trio.fail_after(30):
        while True:
            answer = await service.dashboard.get("/search", params={"q": q, **params})
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            if found["behind"] is None:
                return found
            await trio.sleep(LOOK_S)  # looks again: nothing announces it


async def conversations(service: Service, q: str) -> list[str]:
    """The titles of the conversations that are found."""
    found = await searched(service, q)
    return [each["conversation"]["title"] for each in found["conversations"]]


async def test_a_conversation_is_found_by_beginnings_of_words_in_its_title_messages_and_notes(
    service: Service,
) -> None:
    made = await service.create("u1", title="Parcel")
    await service.say(made, "Where is order A-1001, please?")
    note = {"text": "Called ada@ex.org twice", "internal": True}
    assert (await service.dashboard.post(f"/conversations/{made['id']}/messages", json=note)).is_success
    for q in (
        "parc",
        "orde whe",
        "A-1001",
        "a-10",
        "1001",
        "ADA@ex",
        "ex.org",
        "parcel ada@ex.org order",
        "PARCEL",
    ):
        assert await conversations(service, q) == ["Parcel"], q
    for q in ("rcel", "parcel nobody", "a-1002", "da@ex.org", "#", "\u202e", "'"):
        assert await conversations(service, q) == [], q
