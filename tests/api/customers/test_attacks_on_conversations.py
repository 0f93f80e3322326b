"""Calls of customers with other people's ids, the wrong credential and bad bodies: none shows or changes anything."""

from __future__ import annotations

from typing import Any, Final

import httpx
import pytest

from deskwire.engine.core.text import MESSAGE_TEXT_MAX
from deskwire.http.app import ROUTES
from tests.api.customers.browsing import Visit, begin, first, get, say
from tests.api.uploads.test_uploads import send
from tests.api.workflows.test_workflows import pointers
from tests.support.api.customers import Browser
from tests.support.api.service import Service

UNKNOWN: Final = "cnv_00000000000000000000000000"
MESSAGE: Final[dict[str, Any]] = {"text": "Hello", "clientId": "m-1"}
CALLS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("GET", "", None),
    ("GET", "/messages", None),
    ("POST", "/messages", MESSAGE),
    ("POST", "/read", {}),
    ("POST", "/read", {"seen": "msg_00000000000000000000000000"}),
    ("POST", "/typing", {"typing": True}),
    ("POST", "/rating", {"rating": 1}),
    ("GET", "/workflow", None),
    ("POST", "/workflow/reply", {"actionId": 1, "value": "x"}),
    ("PUT", "/network-logs", {"requests": []}),
)
"""Each call on a conversation, with a valid body."""


async def call(browser: Browser, method: str, path: str, body: Any) -> httpx.Response:
    return await browser.call(method, path, **({} if body is None else {"json": body}))


def test_attacks_cover_every_call_on_a_conversation() -> None:
    routes = {
        (route.method, route.path.partition("<conversation_id>")[2])
        for route in ROUTES
        if route.path.startswith("/v3/customer/conversations/<conversation_id>")
    }
    assert routes == {(method, path) for method, path, _ in CALLS}


async def test_no_call_reaches_a_conversation_that_is_not_the_customers_own(
    service: Service, visit: Visit
) -> None:
    """Another contact's in the same channel, a hidden one, another contact's client id, and malformed ids."""
    browser = await visit()
    other = await visit(browser.channel)
    await begin(browser)
    foreign = await begin(other, "Secret")
    hidden = await service.create(user=(await get(browser, "/me"))["userId"], visible=False)
    before = await service.http.get("/s2s/conversations")
    named = (
        foreign["id"],
        f"client:{foreign['clientId']}",
        hidden["id"],
        UNKNOWN,
        "client:",
        "client:%20",
        "cnv_1",
        "msg_00000000000000000000000000",
    )
    for conversation in named:
        for method, path, body in CALLS:
            answer = await call(browser, method, f"/conversations/{conversation}{path}", body)
            found = (answer.status_code, answer.json()["code"])
            assert found == (404, "conversation_not_found"), (conversation, method, path, answer.text)
    assert (await service.http.get("/s2s/conversations")).json() == before.json()
    assert [each["id"] for each in (await get(other, "/conversations"))["items"]] == [foreign["id"]]
    messages = (await get(other, f"/conversations/{foreign['id']}/messages"))["items"]
    assert [each["text"] for each in messages] == ["Secret"]


async def test_refusals_of_a_message_do_not_reveal_another_contacts_conversation(
    service: Service, visit: Visit
) -> None:
    """The owner's refusals, of a client id of another text and of a deleted message, are not shown to another contact."""
    owner, stranger = await visit(), await visit()
    await begin(stranger)
    started = await begin(owner)
    await say(owner, started["id"], "My card is 1234", "kept")
    deleted = (await say(owner, started["id"], "My card is 1234", "deleted")).json()
    path = f"/s2s/conversations/{started['id']}/messages/{deleted['id']}"
    assert (await service.http.delete(path)).status_code == 200
    for client_id, code in (("kept", "idempotency_mismatch"), ("deleted", "idempotency_answer_erased")):
        own = await say(owner, started["id"], "Another text", client_id)
        foreign = await say(stranger, started["id"], "Another text", client_id)
        assert own.json()["code"] == code
        assert (foreign.status_code, foreign.json()["code"]) == (404, "conversation_not_found")


async def test_visitor_without_a_message_has_nothing(visit: Visit) -> None:
    browser = await visit()
    for method, path, body in CALLS:
        answer = await call(browser, method, f"/conversations/{UNKNOWN}{path}", body)
        assert (answer.status_code, answer.json()["code"]) == (404, "conversation_not_found")
    assert (await get(browser, "/conversations"))["items"] == []


async def test_notes_and_other_conversations_messages_are_no_positions(
    service: Service, visit: Visit
) -> None:
    browser = await visit()
    mine, another = await begin(browser), await begin(browser)
    note = await service.dashboard.post(
        f"/conversations/{mine['id']}/messages", json={"text": "a note", "internal": True}
    )
    assert note.status_code == 200, note.text
    path = f"/conversations/{mine['id']}"
    for message in (note.json()["id"], another["lastMessage"]["id"]):
        listed = await browser.call("GET", f"{path}/messages", params={"after": message})
        assert (listed.status_code, listed.json()["code"]) == (404, "message_not_found")
        marked = await browser.call("POST", f"{path}/read", json={"seen": message})
        assert pointers(marked) == [("/seen", "unknown")]
    assert "a note" not in (await browser.call("GET", f"{path}/messages")).text
    shown = await get(browser, path)
    assert shown["lastMessage"]["text"] == "Hello"


async def test_other_credentials_are_refused_and_the_token_opens_nothing_else(
    service: Service, visit: Visit
) -> None:
    browser = await visit()
    started = await begin(browser)
    for path in ("/conversations", f"/conversations/{started['id']}"):
        for credential in (service.demo["serverKey"], service.dashboard.headers["authorization"][7:], "x"):
            answer = await browser.http.get(path, headers={"Authorization": f"Bearer {credential}"})
            assert answer.status_code == 401, answer.text
        assert (await browser.http.get(path)).status_code == 401
    mine = {"Authorization": f"Bearer {browser.token}"}
    for path in ("/s2s/conversations", "/conversations", f"/s2s/conversations/{started['id']}", "/uploads/x"):
        answer = await service.http.get(path, headers=mine)
        assert answer.status_code == 401, answer.text
    foreign = await browser.http.get("/conversations", headers={**mine, "Origin": "https://evil.example"})
    assert (foreign.status_code, foreign.json()["code"]) == (403, "origin_not_allowed")


@pytest.mark.parametrize(
    ("body", "problems"),
    [
        ({"text": "Hello"}, [("/clientId", "required")]),
        ({"text": None, "clientId": None}, [("/clientId", "invalid"), ("/text", "invalid")]),
        ({"text": "", "clientId": "m"}, [("/text", "too_short")]),
        ({"text": "x", "clientId": ""}, [("/clientId", "invalid")]),
        ({"text": "x", "clientId": "x" * 65}, [("/clientId", "invalid")]),
        ({"text": "x", "clientId": "a/b"}, [("/clientId", "invalid")]),
        ({"text": "x", "clientId": 7}, [("/clientId", "invalid")]),
        ({"text": "x" * (MESSAGE_TEXT_MAX + 1), "clientId": "m"}, [("/text", "too_long")]),
        ({"text": "x", "clientId": "m", "author": {"type": "agent"}}, [("/author", "unknown_field")]),
        ({"text": "x", "clientId": "m", "internal": True}, [("/internal", "unknown_field")]),
        ({"text": "x", "clientId": "m", "attachments": ["upl_1"]}, [("/attachments/0", "unknown")]),
    ],
)
async def test_bad_message_is_refused_with_every_problem(
    visit: Visit, body: dict[str, Any], problems: list[tuple[str, str]]
) -> None:
    browser = await visit()
    started = await begin(browser)
    refused = await browser.call("POST", f"/conversations/{started['id']}/messages", json=body)
    assert sorted(pointers(refused)) == problems
    assert len((await get(browser, f"/conversations/{started['id']}/messages"))["items"]) == 1


async def test_bad_first_message_stores_no_contact(service: Service, visit: Visit) -> None:
    browser = await visit()
    bad = (
        first(""),
        first(client=1),
        {**first(), "clientId": "a b"},
        first(contact={"userId": "u1"}),
        first(contact={"email": "nobody"}),
        first(context={"url": "x" * 5_000}),
        first(title="Mine"),
        first(attributes={"vip": True}),
    )
    for body in bad:
        assert (await browser.call("POST", "/conversations", json=body)).status_code == 422, body
    with_file = first()
    with_file["message"]["attachments"] = [(await send(service))["id"]]
    refused = await browser.call("POST", "/conversations", json=with_file)
    assert (refused.status_code, refused.json()["code"]) == (403, "message_required")
    assert (await service.http.get("/s2s/conversations")).json()["items"] == []
    listed = await service.dashboard.get("/contacts", params={"q": "visitor"})
    assert listed.json()["items"] == []


async def test_session_is_limited_in_messages_and_conversations(visit: Visit) -> None:
    """A repeated message counts against no limit: a message that waits is not delayed by messages that have arrived."""
    browser = await visit()
    started = await begin(browser)
    codes = []
    for number in range(31):
        answer = await say(browser, started["id"], "Hello", f"m-{number}")
        codes.append(answer.status_code)
    assert codes[:29] == [200] * 29
    assert codes[-1] == 429
    assert answer.json()["code"] == "rate_limited"
    assert int(answer.headers["retry-after"]) > 0
    again = await say(browser, started["id"], "Hello", "m-1")
    assert (again.status_code, again.headers["idempotent-replayed"]) == (200, "true")

    other = await visit(browser.channel)
    answers = [await other.call("POST", "/conversations", json=first()) for _ in range(6)]
    assert [each.status_code for each in answers] == [200] * 5 + [429]
    assert answers[-1].json()["code"] == "rate_limited"
