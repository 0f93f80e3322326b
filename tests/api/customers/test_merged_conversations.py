"""Merged conversations for a customer's client, which may have been offline during the merge."""

from __future__ import annotations

from typing import Any

from tests.api.customers.browsing import Visit, begin, get, say
from tests.support.api.customers import Browser
from tests.support.api.service import Service


async def merged(service: Service, browser: Browser) -> tuple[dict[str, Any], dict[str, Any]]:
    """Start two conversations and merge the first one into the second."""
    source, target = await begin(browser, "first"), await begin(browser, "second")
    path = f"/conversations/{source['id']}/merge"
    answer = await service.dashboard.post(path, json={"into": target["id"]})
    assert answer.status_code == 200, answer.text
    return source, target


async def texts(browser: Browser, conversation: dict[str, Any], **params: str) -> list[str]:
    listed = await get(browser, f"/conversations/{conversation['id']}/messages", **params)
    return [each["text"] for each in listed["items"]]


async def test_customer_sees_one_conversation_with_the_messages_of_both(
    service: Service, visit: Visit
) -> None:
    browser = await visit()
    source, target = await merged(service, browser)
    listed = (await get(browser, "/conversations"))["items"]
    assert [each["id"] for each in listed] == [target["id"]]
    assert "merged" not in listed[0]
    assert await texts(browser, target) == ["first", "second"]
    assert await texts(browser, target, order="desc") == ["second", "first"]
    assert (await get(browser, f"/conversations/{source['id']}"))["mergedInto"] == target["id"]
    assert await texts(browser, source) == ["first"]


async def test_message_of_an_offline_client_is_stored_once_in_the_target(
    service: Service, visit: Visit
) -> None:
    browser = await visit()
    source, target = await merged(service, browser)
    sent = await say(browser, source["id"], "from a train", "c-1")
    assert (sent.status_code, sent.json()["conversationId"]) == (200, target["id"])
    again = await say(browser, f"client:{source['clientId']}", "from a train", "c-1")
    assert (again.status_code, again.json()["id"]) == (200, sent.json()["id"])
    assert again.headers["idempotent-replayed"] == "true"
    await service.dashboard.post(f"/conversations/{source['id']}/unmerge")
    again = await say(browser, source["id"], "from a train", "c-1")
    assert (again.status_code, again.json()["conversationId"]) == (200, target["id"])
    assert await texts(browser, target) == ["second", "from a train"]
    assert await texts(browser, source) == ["first"]


async def test_marks_cover_the_messages_of_both(service: Service, visit: Visit) -> None:
    browser = await visit()
    source, target = await merged(service, browser)
    answered = {"type": "agent", "name": "Grace"}
    last = await service.say(target, "It left today.", author=answered)
    assert (await get(browser, f"/conversations/{target['id']}"))["unread"] is True
    path = f"/conversations/{target['id']}/read"
    first = (await get(browser, f"/conversations/{source['id']}/messages"))["items"][0]
    seen = await browser.call("POST", path, json={"seen": first["id"]})
    assert (seen.status_code, seen.json()["unread"]) == (200, True)
    seen = await browser.call("POST", path, json={"seen": last["id"]})
    assert (seen.status_code, seen.json()["unread"]) == (200, False)
    thread = await service.dashboard.get(f"/conversations/{target['id']}/messages")
    assert all(each["seenAt"] for each in thread.json()["items"])
    unknown = await browser.call("POST", path, json={"seen": "msg_0"})
    assert unknown.status_code == 422


async def test_another_customers_merged_conversation_is_not_found(service: Service, visit: Visit) -> None:
    browser = await visit()
    source, target = await merged(service, browser)
    stranger = await visit(browser.channel)
    await begin(stranger)
    for each in (source, target):
        refused = await say(stranger, each["id"], "Let me in")
        assert (refused.status_code, refused.json()["code"]) == (404, "conversation_not_found")
        assert target["id"] not in refused.text
    assert await texts(browser, target) == ["first", "second"]


async def test_rating_and_network_logs_go_to_the_target(service: Service, visit: Visit) -> None:
    browser = await visit()
    source, target = await merged(service, browser)
    rated = await browser.call("POST", f"/conversations/{source['id']}/rating", json={"rating": 8})
    assert rated.status_code == 200, rated.text
    assert (await get(browser, f"/conversations/{target['id']}"))["rating"] == 8
    logs = {"requests": [{"url": "https://shop.example/x"}]}
    sent = await browser.call("PUT", f"/conversations/{source['id']}/network-logs", json=logs)
    assert sent.status_code == 204
    stored = await service.dashboard.get(f"/conversations/{target['id']}/network-logs")
    assert [each["url"] for each in stored.json()["requests"]] == ["https://shop.example/x"]
