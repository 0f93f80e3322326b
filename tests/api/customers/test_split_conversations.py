"""Conversations that were split off, for a customer's client."""

from __future__ import annotations

from typing import Any

from tests.api.customers.browsing import Visit, begin, get, say
from tests.api.customers.test_merged_conversations import texts
from tests.support.api.customers import Browser
from tests.support.api.inbox import reply
from tests.support.api.service import Service


async def separated(service: Service, browser: Browser) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Split the customer's second message off, with a note; return both conversations, and the message's id."""
    source = await begin(browser, "first")
    second = (await say(browser, source["id"], "second", "c-2")).json()["id"]
    noted = (await reply(service, source, text="A secret note", internal=True)).json()
    body = {"messageIds": [second, noted["id"]], "title": "My address"}
    answer = await service.dashboard.post(f"/conversations/{source['id']}/split", json=body)
    assert answer.status_code == 200, answer.text
    return source, answer.json(), second


async def test_customer_sees_a_new_conversation_with_the_messages(service: Service, visit: Visit) -> None:
    browser = await visit()
    source, new, second = await separated(service, browser)
    listed = {each["id"]: each for each in (await get(browser, "/conversations"))["items"]}
    assert set(listed) == {source["id"], new["id"]}
    shown = listed[new["id"]]
    assert (shown["splitFrom"], shown["title"]) == (source["id"], "My address")
    assert (shown["lastMessage"]["id"], shown["lastMessage"]["conversationId"]) == (second, source["id"])
    assert "splitInto" not in listed[source["id"]]
    assert await texts(browser, new) == ["second"]
    assert await texts(browser, new, order="desc") == ["second"]
    messages = (await get(browser, f"/conversations/{source['id']}/messages"))["items"]
    assert [each["text"] for each in messages] == ["first", "second"]
    assert all("splitInto" not in each for each in messages)


async def test_customer_writes_and_reads_in_the_new_conversation(service: Service, visit: Visit) -> None:
    browser = await visit()
    source, new, second = await separated(service, browser)
    sent = await say(browser, new["id"], "12 Elm Street", "c-3")
    assert (sent.status_code, sent.json()["conversationId"]) == (200, new["id"])
    last = (await reply(service, new, text="Changed.")).json()
    assert await texts(browser, new) == ["second", "12 Elm Street", "Changed."]
    assert await texts(browser, source) == ["first", "second"]
    path = f"/conversations/{new['id']}/read"
    seen = await browser.call("POST", path, json={"seen": second})
    assert (seen.status_code, seen.json()["unread"]) == (200, True)
    thread = (await service.dashboard.get(f"/conversations/{source['id']}/messages")).json()["items"]
    assert [bool(each["seenAt"]) for each in thread if not each["internal"]] == [True, True]
    seen = await browser.call("POST", path, json={"seen": last["id"]})
    assert (seen.status_code, seen.json()["unread"]) == (200, False)
    everything = await browser.call("POST", path, json={})
    assert everything.status_code == 200, everything.text
    unknown = await browser.call("POST", path, json={"seen": "msg_0"})
    assert unknown.status_code == 422


async def test_reading_the_new_conversation_leaves_later_answers_in_the_old_one_unread(
    service: Service, visit: Visit
) -> None:
    browser = await visit()
    source, new, second = await separated(service, browser)
    await reply(service, source, text="It left today.")
    last = (await reply(service, new, text="Changed.")).json()
    for body in ({"seen": last["id"]}, {"reached": second}, {}):
        answer = await browser.call("POST", f"/conversations/{new['id']}/read", json=body)
        assert answer.status_code == 200, answer.text
    assert (await get(browser, f"/conversations/{source['id']}"))["unread"] is True
    assert (await get(browser, f"/conversations/{new['id']}"))["unread"] is False


async def test_redaction_changes_the_page_that_lists_the_new_conversation(
    service: Service, visit: Visit
) -> None:
    browser = await visit()
    source, new, second = await separated(service, browser)
    page = await browser.call("GET", "/conversations")
    known = {"Authorization": f"Bearer {browser.token}", "If-None-Match": page.headers["etag"]}
    assert (await browser.http.get("/conversations", headers=known)).status_code == 304
    path = f"/conversations/{source['id']}/messages/{second}/redact"
    assert (await service.dashboard.post(path, json={"text": True})).status_code == 200
    later = await browser.http.get("/conversations", headers=known)
    assert later.status_code == 200
    (shown,) = [each for each in later.json()["items"] if each["id"] == new["id"]]
    assert shown["lastMessage"]["text"] == ""


async def test_another_customer_finds_neither_conversation(service: Service, visit: Visit) -> None:
    browser = await visit()
    _, new, second = await separated(service, browser)
    stranger = await visit(browser.channel)
    own = await begin(stranger)
    for path in (f"/conversations/{new['id']}", f"/conversations/{new['id']}/messages"):
        refused = await stranger.call("GET", path)
        assert (refused.status_code, refused.json()["code"]) == (404, "conversation_not_found")
    body = {"messageIds": [second]}
    split = await service.dashboard.post(f"/conversations/{own['id']}/split", json=body)
    assert split.status_code == 422
    assert await texts(stranger, own) == ["Hello"]
