"""Random changes and outages: the page ends up equal to a freshly loaded one."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx
import pytest
from playwright.sync_api import expect

from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import Stage

STEPS: Final = 350
WORDS: Final = ("parcel", "refund", "invoice", "delay", "thanks", "hello", "address")


class History:
    """Random changes of a few conversations by contacts, agents and the backend."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage = stage
        self.random = random.Random(seed)
        self.conversations = [
            stage.converse(f"u{number}", f"Opening {number}", name=f"Contact {number}")
            for number in range(12)
        ]

    def step(self) -> None:
        """Make one change; a refused one has no effect."""
        r, owner, s2s = self.random, self.stage.owner, self.stage.s2s
        one = r.choice(self.conversations)
        agents, backend = f"/conversations/{one['id']}", f"/s2s/conversations/{one['id']}"
        text = {"text": " ".join(r.choices(WORDS, k=3)) + f" {r.random():.6f}"}
        later = (datetime.now(UTC) + timedelta(hours=r.randint(1, 40))).isoformat()
        choices: list[tuple[httpx.Client, str, str, dict[str, Any]]] = [
            (s2s, "POST", f"{backend}/messages", text),
            (s2s, "POST", f"{backend}/messages", text),
            (owner, "POST", f"{agents}/messages", text),
            (owner, "POST", f"{agents}/messages", {**text, "internal": True}),
            (owner, "POST", f"{agents}/messages", {**text, "then": {"close": True}}),
            (owner, "POST", f"{agents}/assign", {"assignee": None}),
            (owner, "POST", f"{agents}/close", {}),
            (owner, "POST", f"{agents}/reopen", {}),
            (owner, "PATCH", agents, {"tags": r.sample(WORDS, k=2)}),
            (owner, "PATCH", agents, {"snoozedUntil": r.choice((None, later))}),
            (owner, "PATCH", agents, {"title": r.choice(WORDS)}),
            (owner, "PATCH", agents, {"status": r.choice(("OPEN", "PENDING"))}),
            (s2s, "POST", f"{backend}/read", {}),
            (
                s2s,
                "PATCH",
                f"/s2s/contacts/{one['contact']['userId']}",
                {"name": f"Renamed {r.random():.4f}"},
            ),
        ]
        client, method, path, body = r.choice(choices)
        assert client.request(method, path, json=body).status_code < 500
        if r.random() < 0.01 and len(self.conversations) > 6:
            owner.delete(agents).raise_for_status()
            self.conversations.remove(one)
        if r.random() < 0.02:
            number = r.random()
            self.conversations.append(
                self.stage.converse(f"n{number}", "A new one", name=f"New {number:.4f}")
            )


def said(desk: Desk) -> list[str]:
    """Return the texts of the thread."""
    texts: list[str] = desk.log.locator(".message").all_inner_texts()
    return texts


@pytest.mark.parametrize("seed", [1, 2])
def test_page_equals_a_fresh_one_after_random_outages(desk: Desk, seed: int) -> None:
    stage = desk.stage
    history = History(stage, seed)
    kept = history.conversations[0]
    desk.tolerated.append(NETWORK)
    desk.sign_in()
    desk.converse("Contact 0")
    expect(desk.said("Opening 0")).to_be_visible()
    history.conversations.remove(kept)  # the open conversation is not deleted
    for number in range(STEPS):
        if number % 5 == 0:
            stage.say(kept, f"Step {number}")
        history.step()
        if history.random.random() < 0.03:
            stage.cut()
        if history.random.random() < 0.02:
            stage.close_road()
            for _ in range(history.random.randint(1, 12)):
                history.step()
            stage.open_road()
    fresh = Desk(stage, desk.context, desk.context.new_page())
    desk.watch(fresh.page)
    fresh.page.goto(desk.page.url)
    fresh.view()  # closes the conversation
    fresh.converse("Contact 0")
    expect(fresh.page.get_by_role("option").first).to_be_visible()
    expect(fresh.said(f"Step {STEPS - 5}")).to_be_visible()
    shown, thread = fresh.rows(), said(fresh)
    desk.page.bring_to_front()
    desk.eventually(desk.rows, shown)
    desk.eventually(lambda: said(desk)[-len(thread) :], thread)
