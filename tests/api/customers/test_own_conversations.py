"""A customer's own conversations from a browser: started, written in, read, rated, and in the customer's view only."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import trio

from deskwire.engine.customers.view import CONVERSATION, MESSAGE
from tests.api.customers.browsing import Visit, begin, first, get, say
from tests.api.workflows.test_workflows import CHAT, make, pointers
from tests.support.api.customers import Browser
from tests.support.api.inbox import view
from tests.support.api.service import Service


async def test_visitor_starts_a_conversation_and_reads_it_in_the_customers_view(
    service: Service, visit: Visit
) -> None:
    browser = await visit()
    assert await get(browser, "/conversations") == {"items": [], "nextCursor": None}
    body = first("Where is my order?", contact={"name": "Ada"}, context={"url": "https://shop.example/cart"})
    answer = await browser.call("POST", "/conversations", json=body)
    assert answer.status_code == 200, answer.text
    started = answer.json()
    assert set(started) <= set(CONVERSATION)
    assert (started["clientId"], started["channelId"]) == (body["clientId"], browser.channel["id"])
    message = started["lastMessage"]
    assert set(message) <= set(MESSAGE)
    assert message["author"] == {"type": "contact", "name": "Ada", "self": True}
    assert message["clientId"] == body["message"]["clientId"]

    named = f"client:{body['clientId']}"
    await service.http.patch(f"/s2s/conversations/{started['id']}", json={"attributes": {"fraudScore": 97}})
    await service.say(started, "It left today.", author={"type": "agent", "name": "Grace"})
    for path in (f"/conversations/{started['id']}", f"/conversations/{named}"):
        seen = await get(browser, path)
        assert set(seen) <= set(CONVERSATION)
        assert (seen["unread"], seen["lastMessage"]["text"]) == (True, "It left today.")
        assert seen["lastMessage"]["author"] == {"type": "agent", "name": "Grace", "self": False}
    listed = await get(browser, "/conversations")
    assert listed == {"items": [seen], "nextCursor": None}
    messages = await get(browser, f"/conversations/{named}/messages")
    assert [each["text"] for each in messages["items"]] == ["Where is my order?", "It left today."]
    known = await service.fetch(started)
    assert known["contact"]["name"] == "Ada"
    assert known["attributes"] == {"fraudScore": 97}


async def test_repeated_first_message_answers_the_stored_conversation(service: Service, visit: Visit) -> None:
    """Also if the first answer was lost, and the visitor's token is all that the browser has."""
    browser = await visit()
    body = first()
    answers = [await browser.call("POST", "/conversations", json=body) for _ in range(3)]
    assert [each.status_code for each in answers] == [200] * 3
    assert len({each.json()["id"] for each in answers}) == 1
    assert [each.headers.get("idempotent-replayed") for each in answers] == [None, "true", "true"]
    assert answers[0].json()["lastMessage"] == answers[1].json()["lastMessage"]
    listed = (await service.http.get("/s2s/conversations")).json()["items"]
    assert len(listed) == 1

    changed = {**body, "message": {**body["message"], "text": "Another"}}
    unknown = {**body, "message": {**body["message"], "clientId": "another"}}
    for other in (changed, unknown):
        refused = await browser.call("POST", "/conversations", json=other)
        assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_mismatch")


async def test_two_tabs_that_start_at_once_share_contact_and_conversation(
    service: Service, visit: Visit
) -> None:
    one = await visit()
    other = await visit(one.channel)
    other.token = one.token
    body, own = first(), first("From the other tab")
    answers: list[httpx.Response] = []

    async def post(browser: Browser, sent: dict[str, Any]) -> None:
        answers.append(await browser.call("POST", "/conversations", json=sent))

    async with trio.open_nursery() as nursery:
        for browser, sent in ((one, body), (other, body), (other, own)):
            nursery.start_soon(post, browser, sent)
    assert [each.status_code for each in answers] == [200] * 3, [each.text for each in answers]
    assert len({each.json()["id"] for each in answers}) == 2
    listed = (await service.http.get("/s2s/conversations")).json()["items"]
    assert len({each["contact"]["userId"] for each in listed}) == 1
    assert len(listed) == 2


async def test_message_under_its_client_id_is_stored_once(service: Service, visit: Visit) -> None:
    browser = await visit()
    started = await begin(browser)
    answers: list[httpx.Response] = []

    async def post() -> None:
        answers.append(await say(browser, started["id"], "Are you there?", "m-1"))

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(post)
    assert {each.status_code for each in answers} == {200}
    assert len({each.json()["id"] for each in answers}) == 1
    replayed = [each.headers.get("idempotent-replayed") for each in answers]
    assert sorted(map(str, replayed)) == ["None", *["true"] * 5]
    refused = await say(browser, started["id"], "Another text", "m-1")
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_mismatch")
    messages = (await get(browser, f"/conversations/{started['id']}/messages"))["items"]
    assert [each["text"] for each in messages] == ["Hello", "Are you there?"]
    seen = (await service.http.get(f"/s2s/conversations/{started['id']}/messages")).json()["items"]
    assert seen[1]["clientId"] == "m-1"
    events = [each for each in await service.events() if each["type"] == "message.created"]
    assert [each["data"]["message"].get("clientId") for each in events][1] == "m-1"


async def test_redacted_message_is_not_stored_again_and_a_deleted_one_is_gone(
    service: Service, visit: Visit
) -> None:
    browser = await visit()
    started = await begin(browser)
    sent = (await say(browser, started["id"], "My card is 1234", "m-1")).json()
    path = f"/s2s/conversations/{started['id']}/messages/{sent['id']}"
    assert (await service.http.post(f"{path}/redact", json={"text": True})).status_code == 200
    again = await say(browser, started["id"], "My card is 1234", "m-1")
    assert (again.status_code, again.json()["id"], again.json()["text"]) == (200, sent["id"], "")
    assert (await service.http.delete(path)).status_code == 200
    gone = await say(browser, started["id"], "My card is 1234", "m-1")
    assert (gone.status_code, gone.json()["code"]) == (410, "idempotency_answer_erased")
    messages = (await get(browser, f"/conversations/{started['id']}/messages"))["items"]
    assert [each["text"] for each in messages] == ["Hello"]


async def test_messages_are_paged_in_both_directions(service: Service, visit: Visit) -> None:
    browser = await visit()
    started = await begin(browser, "0")
    for number in range(1, 7):
        await say(browser, started["id"], str(number))
    path = f"/conversations/{started['id']}/messages"

    async def all_pages(**params: Any) -> list[str]:
        found, cursor = [], None
        while True:
            page = await get(browser, path, limit=3, **params, **({"cursor": cursor} if cursor else {}))
            found += [each["text"] for each in page["items"]]
            cursor = page["nextCursor"]
            if cursor is None:
                return found

    whole = [str(number) for number in range(7)]
    assert await all_pages() == whole
    assert await all_pages(order="desc") == whole[::-1]
    ids = {each["text"]: each["id"] for each in (await get(browser, path))["items"]}
    older = await get(browser, path, before=ids["4"], limit=2)
    assert [each["text"] for each in older["items"]] == ["2", "3"]
    newer = await get(browser, path, after=ids["4"])
    assert [each["text"] for each in newer["items"]] == ["5", "6"]
    before = await get(browser, path, before=ids["3"], order="desc", limit=2)
    assert [each["text"] for each in before["items"]] == ["2", "1"]
    answer = await browser.call("GET", path, params={"after": "msg_00000000000000000000000000"})
    assert (answer.status_code, answer.json()["code"]) == (404, "message_not_found")


async def test_list_has_an_entity_tag_that_changes_with_a_conversation(
    service: Service, visit: Visit
) -> None:
    browser = await visit()
    started = await begin(browser)

    async def conditional(tag: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {browser.token}", "If-None-Match": tag}
        return await browser.http.get("/conversations", headers=headers)

    tag = (await browser.call("GET", "/conversations")).headers["etag"]
    same = await conditional(tag)
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    await service.say(started, "Hi", author={"type": "agent", "name": "Grace"})
    changed = await conditional(tag)
    assert (changed.status_code, changed.json()["items"][0]["unread"]) == (200, True)


async def test_marks_of_a_client_only_grow_and_agents_learn_of_them(service: Service, visit: Visit) -> None:
    browser = await visit()
    started = await begin(browser)
    ids = [
        (await service.say(started, text, author={"type": "agent", "name": "Grace"}))["id"] for text in "ab"
    ]
    path = f"/conversations/{started['id']}/read"

    async def mark(**body: Any) -> dict[str, Any]:
        answer = await browser.call("POST", path, json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def marks() -> tuple[int | None, int | None]:
        seen = await view(service, started)
        return seen["contactReachedIndex"], seen["contactSeenIndex"]

    assert (await mark(reached=ids[1]))["unread"]
    assert await marks() == (2, None)
    assert (await mark(reached=ids[0], seen=ids[0]))["unread"]
    assert await marks() == (2, 1)
    assert not (await mark(seen=ids[1]))["unread"]
    assert await marks() == (2, 2)
    await mark(seen=ids[0])
    await mark()
    assert await marks() == (2, 2)
    extensions = await service.events(types="message.reached,message.seen")
    found = [(each["type"], each["data"]["messageId"], each["data"]["index"]) for each in extensions]
    assert found == [
        ("message.reached", ids[1], 2),
        ("message.seen", ids[0], 1),
        ("message.seen", ids[1], 2),
    ]
    assert extensions[0]["data"]["conversation"]["id"] == started["id"]
    refused = await browser.call(
        "POST", path, json={"reached": "msg_00000000000000000000000000", "seen": "x"}
    )
    assert pointers(refused) == [("/reached", "unknown"), ("/seen", "unknown")]


async def test_reading_without_a_body_marks_everything(service: Service, visit: Visit) -> None:
    browser = await visit()
    started = await begin(browser)
    await service.say(started, "Hi", author={"type": "agent", "name": "Grace"})
    answer = await browser.call("POST", f"/conversations/client:{started['clientId']}/read")
    assert (answer.status_code, answer.json()["unread"]) == (200, False)


async def test_customer_rates_and_agents_see_typing_and_network_logs(service: Service, visit: Visit) -> None:
    browser = await visit()
    started = await begin(browser)
    path = f"/conversations/{started['id']}"
    rated = await browser.call("POST", f"{path}/rating", json={"rating": 9, "comment": "Quick"})
    assert (rated.status_code, rated.json()["rating"], rated.json()["comment"]) == (200, 9, "Quick")
    seen = await get(browser, path)
    assert (seen["rating"], seen["ratingComment"]) == (9, "Quick")
    assert (await browser.call("POST", f"{path}/typing", json={"typing": True})).status_code == 204
    logs = {"requests": [{"url": "https://shop.example/cart"}]}
    assert (await browser.call("PUT", f"{path}/network-logs", json=logs)).status_code == 204
    kept = await service.dashboard.get(f"/conversations/{started['id']}/network-logs")
    assert kept.json()["requests"][0]["url"] == "https://shop.example/cart"


async def test_channel_starts_its_workflow_with_the_conversation(service: Service, visit: Visit) -> None:
    """The workflow starts in the commit of the conversation; its own trigger does not matter."""
    made = await make(service, CHAT)
    browser = await visit(startsWorkflow=made["id"])
    started = await begin(browser)
    assert started["lastMessage"]["author"]["self"]
    path = f"/conversations/{started['id']}"
    step = (await get(browser, f"{path}/workflow"))["step"]
    assert set(step) == {"stepType", "actionId", "action"}
    assert step["action"]["options"][0]["id"] == "b0"
    messages = (await get(browser, f"{path}/messages"))["items"]
    assert [each["author"]["type"] for each in messages] == ["contact", "bot", "bot"]
    reply = f"{path}/workflow/reply"
    refused = await browser.call("POST", reply, json={"actionId": 2, "value": "unknown"})
    assert refused.status_code == 422
    other = await browser.call("POST", reply, json={"actionId": 9, "value": "order"})
    assert (other.status_code, other.json()["code"]) == (409, "step_not_pending")
    answered = await browser.call("POST", reply, json={"actionId": 2, "value": "b0"})
    assert (answered.status_code, answered.json()["status"]) == (200, "CLOSED")
    assert (await get(browser, f"{path}/workflow"))["step"] is None


async def test_channel_asks_a_visitor_for_fields_before_the_first_message(
    service: Service, visit: Visit
) -> None:
    browser = await visit(visitors={"allowed": True, "ask": ["name?", "email"]})
    refused = await browser.call("POST", "/conversations", json=first(contact={"name": "Ada"}))
    assert pointers(refused) == [("/contact/email", "required")]
    started = await begin(browser, contact={"email": "ada@example.org"})
    assert (await service.fetch(started))["contact"]["email"] == "ada@example.org"
    await begin(browser, "Another one")


@pytest.mark.parametrize("missing", ["clientId", "message"])
async def test_new_conversation_needs_its_fields(visit: Visit, missing: str) -> None:
    browser = await visit()
    body = first()
    del body[missing]
    refused = await browser.call("POST", "/conversations", json=body)
    assert pointers(refused) == [(f"/{missing}", "required")]
