"""A blocked contact reads and can't write, also through the backend; the block outlives a merge and not an erasure."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import trio

from tests.api.customers.browsing import Visit, begin, first, get, say
from tests.api.customers.test_surveys_of_customers import survey_of
from tests.support.api.customers import Browser, make_channel, signed
from tests.support.api.service import Service
from tests.support.api.staff import code, organisation_of

BLOCKED = (403, "contact_blocked")


async def block(service: Service, user: str = "u1", **body: Any) -> dict[str, Any]:
    """Block a contact; return it."""
    answer = await service.http.post(f"/s2s/contacts/{user}/block", json=body)
    assert answer.status_code == 200, answer.text
    contact: dict[str, Any] = answer.json()
    return contact


async def unblock(service: Service, user: str = "u1") -> dict[str, Any]:
    """Unblock a contact; return it."""
    answer = await service.http.post(f"/s2s/contacts/{user}/unblock")
    assert answer.status_code == 200, answer.text
    contact: dict[str, Any] = answer.json()
    return contact


async def written(service: Service, conversation: dict[str, Any]) -> list[str]:
    """Return the texts of a conversation."""
    found = await service.http.get(f"/s2s/conversations/{conversation['id']}/messages")
    return [each["text"] for each in found.json()["items"]]


async def test_agent_blocks_and_unblocks_a_contact(service: Service) -> None:
    contact = (await service.create("u1", message={"text": "Hello"}))["contact"]
    path = f"/contacts/{contact['id']}"
    assert (await service.dashboard.get(path)).json()["blocked"] is None
    blocked = (await service.dashboard.post(f"{path}/block", json={"reason": "Insults"})).json()["blocked"]
    assert (blocked["by"]["type"], blocked["reason"]) == ("user", "Insults")
    again = (await service.dashboard.post(f"{path}/block", json={"reason": "Other"})).json()
    assert again["blocked"] == blocked
    assert (await service.http.get("/s2s/contacts/u1")).json()["blocked"] == blocked
    assert (await service.dashboard.get("/contacts")).json()["items"][0]["blocked"] == blocked
    for _ in range(2):
        assert (await service.dashboard.post(f"{path}/unblock")).json()["blocked"] is None
    changes = [each["data"] for each in await service.events(types="contact.changed")]
    assert [each["changed"] for each in changes] == [["blocked"]] * 2
    assert [each["contact"]["blocked"] for each in changes] == [blocked, None]
    trail = (await service.dashboard.get(f"/organisations/{await organisation_of(service)}/audit")).json()
    actions = [each["action"] for each in trail["items"] if each["object"]["id"] == contact["id"]]
    assert actions == ["contact.unblocked", "contact.blocked"]


@pytest.mark.parametrize("reason", ["", " ", "x" * 501, 3])
async def test_bad_reason_is_refused(service: Service, reason: object) -> None:
    await service.create("u1")
    refused = await service.http.post("/s2s/contacts/u1/block", json={"reason": reason})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/reason")
    assert (await service.http.get("/s2s/contacts/u1")).json()["blocked"] is None


async def test_backend_writes_nothing_in_the_name_of_a_blocked_contact(service: Service) -> None:
    conversation = await service.create("u1", message={"text": "Hello"})
    await service.do(conversation, "close")
    await block(service)
    path = f"/s2s/conversations/{conversation['id']}"
    before = await service.events()
    for refused in (
        await service.http.post(f"{path}/messages", json={"text": "Again"}),
        await service.http.post(
            f"{path}/messages", json={"text": "Again"}, headers={"Idempotency-Key": "k1"}
        ),
        await service.http.post(f"{path}/rating", json={"rating": 0, "comment": "Insult"}),
        await service.http.post(f"{path}/typing", json={"typing": True}),
        await service.http.post("/s2s/conversations", json={"contact": {"userId": "u1"}}),
        await service.http.post(
            "/s2s/conversations",
            json={"contact": {"userId": "u1", "name": "Insult"}, "message": {"text": "?"}},
        ),
    ):
        assert code(refused) == BLOCKED, refused.text
    assert await service.events() == before
    assert await written(service, conversation) == ["Hello"]
    assert (await service.fetch(conversation))["closed"]
    assert (await service.http.get("/s2s/contacts/u1")).json()["name"] is None

    for author in ("agent", "bot", "system"):
        await service.say(conversation, author, author={"type": author})
    own = {"contact": {"userId": "u1"}, "message": {"text": "News", "author": {"type": "bot"}}}
    assert (await service.http.post("/s2s/conversations", json=own)).status_code == 200
    contact_id = conversation["contact"]["id"]
    started = {"contact": {"id": contact_id}, "message": {"text": "We have blocked you"}}
    answer = await service.dashboard.post("/conversations", json=started)
    assert answer.status_code == 200, answer.text
    await unblock(service)
    await service.say(conversation, "Sorry")
    assert (await written(service, conversation))[-1] == "Sorry"
    assert not (await service.fetch(conversation))["closed"]


async def test_key_of_a_refused_message_sends_it_after_the_block(service: Service) -> None:
    conversation = await service.create("u1", message={"text": "Hello"})
    await block(service)
    path, key = f"/s2s/conversations/{conversation['id']}/messages", {"Idempotency-Key": "k1"}
    assert code(await service.http.post(path, json={"text": "Again"}, headers=key)) == BLOCKED
    await unblock(service)
    for _ in range(2):
        assert (await service.http.post(path, json={"text": "Again"}, headers=key)).status_code == 200
    assert await written(service, conversation) == ["Hello", "Again"]


async def test_blocked_customer_reads_and_every_write_is_refused(service: Service, visit: Visit) -> None:
    browser = await visit()
    started = await begin(browser)
    me = await get(browser, "/me")
    path = f"/conversations/{started['id']}"
    sent = (await say(browser, started["id"], "Stored", "m-1")).json()
    await block(service, me["userId"], reason="Insults")
    refusals = [
        await say(browser, started["id"], "Again"),
        await browser.call("POST", "/conversations", json=first("Another")),
        await browser.call("POST", f"{path}/rating", json={"rating": 0}),
        await browser.call("POST", f"{path}/typing", json={"typing": True}),
        await browser.call("PUT", f"{path}/network-logs", json={"requests": []}),
        await browser.call("POST", "/uploads", files={"file": ("a.txt", b"Insult")}),
        await browser.call("PATCH", "/me", json={"name": "Insult"}),
    ]
    for refused in refusals:
        assert code(refused) == BLOCKED, refused.text
        assert "Insults" not in refused.text
    page = {"context": {"url": "https://shop.example/cart"}}
    assert (await browser.call("PATCH", "/me", json=page)).status_code == 200
    # The answer to a lost response: the message was stored before the block.
    again = await say(browser, started["id"], "Stored", "m-1")
    assert (again.status_code, again.json()["id"]) == (200, sent["id"])
    await service.say(started, "You are blocked", author={"type": "agent"})
    messages = (await get(browser, f"{path}/messages"))["items"]
    assert [each["text"] for each in messages] == ["Hello", "Stored", "You are blocked"]
    assert (await browser.call("POST", f"{path}/read", json={})).status_code == 200
    assert (await browser.start()).status_code == 200
    assert code(await say(browser, started["id"], "Again", "m-2")) == BLOCKED
    await unblock(service, me["userId"])
    assert (await say(browser, started["id"], "Again", "m-2")).status_code == 200
    assert (await get(browser, "/me"))["name"] is None


async def test_blocked_customer_answers_no_survey(service: Service, visit: Visit) -> None:
    survey = await survey_of(service)
    browser = await visit(survey=survey["id"])
    await begin(browser)
    await block(service, (await get(browser, "/me"))["userId"])
    path, body = f"/surveys/{survey['id']}/responses", {"clientId": "r1", "answers": {"q1": 5}}
    assert code(await browser.call("POST", path, json=body)) == BLOCKED


async def test_blocked_visitor_stays_blocked_after_signing_in(service: Service) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as browser:
        await browser.start()
        started = await begin(browser)
        visitor = (await get(browser, "/me"))["userId"]
        blocked = (await block(service, visitor, reason="Insults"))["blocked"]
        assert (await browser.start(signed(channel, "u1", name="Ada"))).status_code == 200
        assert (await get(browser, "/me"))["userId"] == "u1"
        assert code(await say(browser, started["id"], "Again")) == BLOCKED
    assert (await service.http.get("/s2s/contacts/u1")).json()["blocked"] == blocked
    changed = [each["data"]["changed"] for each in await service.events(types="contact.changed")]
    assert ["blocked"] in changed


@pytest.mark.parametrize("which", ["source", "target", "both"])
async def test_merged_contact_is_blocked_if_one_of_both_was(service: Service, which: str) -> None:
    conversation = await service.create("source", message={"text": "Hello"})
    await service.create("target", message={"text": "Hello"})
    shown = [
        (await block(service, name))["blocked"] for name in ("source", "target") if which in (name, "both")
    ]
    answer = await service.http.post("/s2s/contacts/target/merge", json={"from": "source"})
    assert answer.json()["blocked"] == shown[-1]
    refused = await service.http.post(
        f"/s2s/conversations/{conversation['id']}/messages", json={"text": "Again"}
    )
    assert code(refused) == BLOCKED
    assert (await unblock(service, "target"))["blocked"] is None
    await service.say(conversation, "Again")


async def test_erasure_ends_the_block_and_its_reason(service: Service) -> None:
    await service.create("u1", message={"text": "Hello"})
    await block(service, reason="reason to erase")
    export = await service.http.get("/s2s/contacts/u1/export")
    assert export.json()["contact"]["blocked"]["reason"] is None
    contact = (await service.http.get("/s2s/contacts/u1")).json()
    noted = await service.dashboard.get(f"/contacts/{contact['id']}/export")
    assert noted.json()["contact"]["blocked"]["reason"] == "reason to erase"
    assert (await service.http.delete("/s2s/contacts/u1")).status_code == 200
    assert "reason to erase" not in str(await service.events())
    assert (await service.create("u1", message={"text": "A new contact"}))["contact"]["id"] != contact["id"]


async def test_no_message_is_stored_after_the_response_to_a_block(service: Service) -> None:
    conversation = await service.create("u1", message={"text": "0"})
    path = f"/s2s/conversations/{conversation['id']}/messages"
    answers: list[httpx.Response] = []

    enough = trio.Event()

    async def write() -> None:
        while not answers or answers[-1].status_code == 200:
            answers.append(await service.http.post(path, json={"text": "more"}))
            if len(answers) == 20:
                enough.set()

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(write)
        await enough.wait()
        await block(service)
        stored = await written(service, conversation)
    assert await written(service, conversation) == stored
    accepted = [each.json()["text"] for each in answers if each.status_code == 200]
    assert stored == ["0", *accepted]
    sequences = [each["sequence"] for each in await service.events() if each["sequence"] is not None]
    assert sequences == list(range(1, len(sequences) + 1))
