"""Event types beyond the contract, only for endpoints and calls that list them.

Source: ADR 51.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import trio

from deskwire.engine.events.types import CATALOG, CONFIDENTIAL, NAMEABLE
from tests.api.events.test_channels_agree import receiving, register
from tests.api.webhooks.test_deliveries import FAILING, WORKING, ask, deliveries, ended
from tests.api.webhooks.test_outages import is_open, look
from tests.support.api.machines import make, showing
from tests.support.api.planted_texts import holding, overwritten
from tests.support.api.service import Service, running
from tests.support.api.surveys import respond, survey
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Receiver
from tests.support.sockets.server_process import free_port

TICKETS = ("ticket.created", "ticket.changed", "ticket.deleted")
RESPONSES = ("survey.response.created", "survey.response.deleted", "survey.deleted")
HEALTH = ("webhook.circuit.opened", "webhook.circuit.closed", "webhook.disabled", "webhook.enabled")
ANSWERS = {"score": 2, "why": "mkslowkm"}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Yield a service that retries quickly and opens circuits at the third failure."""
    quick: dict[str, Any] = {"webhook_retry_after_s": (0.01, 0.01, 0.01), "webhook_circuit_failures": 3}
    async with running(tmp_path, webhook_circuit_s=0.0, **quick) as started:
        yield started


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """Yield a receiver that accepts everything."""
    async with receiving() as started:
        yield started


async def act(service: Service, method: str, path: str, **body: Any) -> dict[str, Any]:
    """Make an agent's call that must succeed; return its response."""
    answer = await service.dashboard.request(method, path, json=body)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def got(receiver: Receiver, count: int) -> list[dict[str, Any]]:
    """Return the envelopes that the receiver got, in order, when there are that many."""
    await receiver.wait(count)
    found = [orjson.loads(request.body) for request in receiver.requests]
    assert len(found) == count, [each["type"] for each in found]
    return found


async def note(service: Service, conversation: dict[str, Any], text: str = "She is a VIP") -> None:
    await act(service, "POST", f"/conversations/{conversation['id']}/messages", text=text, internal=True)


async def problems(answer: httpx.Response) -> list[tuple[str, str]]:
    """Return the problems of a refused call."""
    assert answer.status_code == 422, answer.text
    return [(each["pointer"], each["code"]) for each in answer.json()["errors"]]


async def test_a_tickets_events_arrive_in_their_order_with_its_object_and_its_author(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await register(service, receiver.url, events=[*TICKETS])
    made = await act(service, "POST", "/tickets", title="Parcel lost", tags=["parcel"])
    changed = [await act(service, "PATCH", f"/tickets/{made['id']}", title=f"Parcel {n}") for n in range(8)]
    last = await act(service, "PATCH", f"/tickets/{made['id']}", status="DONE", priority="HIGH")
    bulk = {"selection": {"ids": [made["id"]]}, "payload": {"priority": "LOW"}}
    await act(service, "PUT", "/tickets/bulk", **bulk)
    events = await got(receiver, 11)
    assert [each["type"] for each in events] == ["ticket.created", *["ticket.changed"] * 10]
    assert [each["data"]["ticket"] for each in events[:10]] == [made, *changed, last]
    assert [each["data"]["changed"] for each in events[8:]] == [
        ["title"],
        ["status", "priority"],
        ["priority"],
    ]
    assert {each["data"]["actor"]["type"] for each in events} == {"user"}
    assert {each["sequence"] for each in events} == {None}
    assert [request.headers["Service-Event"] for request in receiver.requests] == [e["type"] for e in events]
    assert all("Service-Previous-Sequence" not in request.headers for request in receiver.requests)
    log = await ended(service, endpoint, 11)
    assert [each["eventId"] for each in log] == [each["id"] for each in reversed(events)]


async def test_a_deleted_ticket_is_announced_by_ids_and_its_pending_events_are_dropped(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await register(service, f"http://127.0.0.1:{free_port()}/", events=[*TICKETS])
    conversation = await service.create()
    made = await act(service, "POST", "/tickets", title="mkgonekm", conversationId=conversation["id"])
    for _ in range(3):
        await act(service, "POST", "/tickets", title="Another")
    await look(service, endpoint, is_open)
    await act(service, "DELETE", f"/tickets/{made['id']}")
    await overwritten(service)
    assert holding(service.directory, b"mkgonekm") == []
    await ask(service, "PATCH", f"/webhooks/{endpoint['id']}", url=receiver.url)
    events = await got(receiver, 4)
    assert sorted(each["type"] for each in events) == [*["ticket.created"] * 3, "ticket.deleted"]
    (deleted,) = [each["data"]["ticket"] for each in events if each["type"] == "ticket.deleted"]
    contact = conversation["contact"]["id"]
    assert deleted == {"id": made["id"], "conversationId": conversation["id"], "contactId": contact}


async def test_a_survey_response_event_has_its_answers_and_survey(
    service: Service, receiver: Receiver
) -> None:
    await register(service, receiver.url, events=[*RESPONSES])
    made = await survey(service)
    response = await respond(service, made, "ada", answers=ANSWERS)
    nobody = await respond(service, made, answers=ANSWERS)
    await act(service, "DELETE", f"/engagement/surveys/{made['id']}/responses/{nobody['id']}")
    await receiver.wait(3)
    await act(service, "DELETE", f"/engagement/surveys/{made['id']}")
    events = await got(receiver, 4)
    assert [each["type"] for each in events].count("survey.response.created") == 2
    first = next(
        each["data"] for each in events if each["data"].get("response", {}).get("id") == response["id"]
    )
    assert first == {"survey": {"id": made["id"], "version": 1}, "response": response}
    assert first["response"]["contact"] == {"userId": "ada"}
    gone = next(each["data"] for each in events if each["type"] == "survey.response.deleted")
    assert gone == {"survey": {"id": made["id"]}, "response": {"id": nobody["id"]}}
    assert events[-1]["data"] == {"survey": {"id": made["id"]}}


@pytest.mark.parametrize("way", ["contact", "response", "survey"])
async def test_an_erased_survey_response_leaves_no_byte_and_is_not_sent(
    service: Service, receiver: Receiver, way: str
) -> None:
    endpoint = await register(service, f"http://127.0.0.1:{free_port()}/", events=[*RESPONSES])
    made = await survey(service)
    response = await respond(service, made, "ada", answers=ANSWERS)
    other = await survey(service)
    for _ in range(3):
        await respond(service, other, answers={"score": 9})
    await look(service, endpoint, is_open)
    assert holding(service.directory, b"mkslowkm") != []
    path = f"/engagement/surveys/{made['id']}"
    match way:
        case "contact":
            await ask(service, "DELETE", "/contacts/ada")
        case "response":
            await act(service, "DELETE", f"{path}/responses/{response['id']}")
        case _:
            await act(service, "DELETE", path)
    with trio.fail_after(HANG_TIMEOUT_S):
        while holding(service.directory, b"mkslowkm"):  # noqa: ASYNC110  # a file rings no bell
            await trio.sleep(0.02)  # poll: there is no notification
    await ask(service, "PATCH", f"/webhooks/{endpoint['id']}", url=receiver.url)
    told = "survey.deleted" if way == "survey" else "survey.response.deleted"
    events = await got(receiver, 4)
    assert sorted(each["type"] for each in events) == sorted([*["survey.response.created"] * 3, told])
    assert not [request for request in receiver.requests if b"mkslowkm" in request.body]


async def test_a_note_reaches_only_endpoints_with_internal_events(
    service: Service, receiver: Receiver
) -> None:
    url = receiver.url
    refused = await service.http.post("/s2s/webhooks", json={"url": url, "events": ["x", "note.created"]})
    assert await problems(refused) == [("/events/1", "needs_internal"), ("/events/0", "unknown_event_type")]
    asks = await register(service, url, events=["note.created"], internal=True)
    assert (asks["internal"], asks["events"]) == (True, ["note.created"])
    async with receiving() as other:
        plain = await register(service, other.url, internal=True)
        await register(service, other.url, events=sorted(NAMEABLE))
        conversation = await service.create()
        await note(service, conversation)
        await service.say(conversation, "the end")
        (told,) = await got(receiver, 1)
        await other.wait(2)
        assert {request.headers["Service-Event"] for request in other.requests} <= CATALOG.keys()
    assert told["data"]["message"]["text"] == "She is a VIP"
    assert told["data"]["message"]["internal"] is True
    assert told["data"]["conversation"]["id"] == conversation["id"]
    path = f"/s2s/webhooks/{asks['id']}"
    assert await problems(await service.http.patch(path, json={"internal": False})) == [
        ("/internal", "needs_internal")
    ]
    path = f"/s2s/webhooks/{plain['id']}"
    listed = {"internal": False, "events": ["note.created"]}
    assert await problems(await service.http.patch(path, json=listed)) == [("/events/0", "needs_internal")]
    await ask(service, "PATCH", f"/webhooks/{plain['id']}", events=["note.created"])


async def test_pending_notes_are_skipped_after_internal_is_turned_off(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await register(
        service, f"http://127.0.0.1:{free_port()}/", events=["note.created"], internal=True
    )
    conversation = await service.create()
    for number in range(3):
        await note(service, conversation, f"mk{number}km")
    await look(service, endpoint, is_open)
    path = f"/webhooks/{endpoint['id']}"
    await ask(service, "PATCH", path, url=receiver.url, internal=False, events=["message.created"])
    await service.say(conversation, "the end")
    log = await ended(service, endpoint, 4)
    assert [each["status"] for each in log] == ["delivered", *["skipped"] * 3]
    assert {each["reason"] for each in log[1:]} == {"the endpoint no longer asks for internal events"}
    again = await ask(service, "POST", f"/deliveries/{log[-1]['id']}/redeliver")
    log = await ended(service, endpoint, 5)
    assert (log[0]["id"], log[0]["status"]) == (again["id"], "skipped")
    assert [each["type"] for each in await got(receiver, 1)] == ["message.created"]


async def test_each_health_transition_is_published_once_to_other_endpoints(
    service: Service, receiver: Receiver
) -> None:
    async with receiving() as watching:
        watcher = await register(service, watching.url, events=[*HEALTH], description="The watch")
        ill = await register(service, receiver.url, events=["conversation.created", *HEALTH])
        receiver.behaviour = FAILING
        for user in range(4):
            await service.create(f"u{user}")
        opened = (await got(watching, 1))[0]
        assert (opened["type"], opened["sequence"]) == ("webhook.circuit.opened", None)
        shown = await look(service, ill, is_open)
        endpoint = opened["data"]["endpoint"]
        for name in ("id", "url", "description", "status", "statusReason", "circuit", "circuitReason"):
            assert endpoint[name] == shown[name], name
        assert endpoint["held"]["count"] >= 3
        receiver.behaviour = WORKING
        await ask(service, "POST", f"/webhooks/{ill['id']}/test")
        closed = (await got(watching, 2))[1]
        assert closed["type"] == "webhook.circuit.closed"
        assert (closed["data"]["endpoint"]["circuit"], closed["data"]["endpoint"]["held"]) == ("closed", None)
        for status in ("disabled", "disabled", "enabled"):
            await ask(service, "PATCH", f"/webhooks/{ill['id']}", status=status)
        events = await got(watching, 4)
        await ask(service, "PATCH", f"/webhooks/{watcher['id']}", status="disabled")
    assert [each["type"] for each in events[2:]] == ["webhook.disabled", "webhook.enabled"]
    statuses = [
        (each["data"]["endpoint"]["status"], each["data"]["endpoint"]["statusReason"]) for each in events
    ]
    assert statuses[2:] == [("disabled", "by the API"), ("enabled", None)]
    log = await deliveries(service, ill, limit="200")
    about = {
        orjson.loads(each.body)["data"]["endpoint"]["id"]
        for each in receiver.requests
        if b"circuit" in each.body
    }
    assert about <= {watcher["id"]}, log


async def test_an_address_that_is_replaced_closes_the_circuit_and_says_so(
    service: Service, receiver: Receiver
) -> None:
    await register(service, receiver.url, events=[*HEALTH])
    ill = await register(service, f"http://127.0.0.1:{free_port()}/")
    for user in range(3):
        await service.create(f"u{user}")
    await look(service, ill, is_open)
    async with receiving() as well:
        for path in ("x", "y"):
            await ask(service, "PATCH", f"/webhooks/{ill['id']}", url=f"{well.url}{path}")
        await well.wait(3)
        told = [each["type"] for each in await got(receiver, 2)]
    assert told == ["webhook.circuit.opened", "webhook.circuit.closed"]


async def test_the_feed_lists_named_extensions_and_never_notes(service: Service) -> None:
    conversation = await service.create()
    await note(service, conversation)
    ticket = await act(service, "POST", "/tickets", title="Parcel lost")
    await respond(service, await survey(service), answers=ANSWERS)
    await service.say(conversation, "the end")
    assert {each["type"] for each in await service.events()} <= CATALOG.keys()
    named = await service.events(types="ticket.created,survey.response.created,message.created")
    assert [each["type"] for each in named] == [
        "ticket.created",
        "survey.response.created",
        "message.created",
    ]
    assert named[0]["data"]["ticket"] == ticket
    behind = await service.events(types="ticket.created,message.created", after=named[0]["id"])
    assert behind == named[2:]
    page = (
        await service.http.get("/s2s/events", params={"types": "ticket.created,message.created", "limit": 1})
    ).json()
    assert (page["items"], page["nextCursor"]) == (named[:1], named[0]["id"])
    for name in CONFIDENTIAL:
        assert (await service.http.get("/s2s/events", params={"types": name})).status_code == 400


@pytest.mark.parametrize("name", ["ticket.created", "survey.response.created"])
async def test_a_caller_that_waits_for_an_extension_is_answered_when_it_comes(
    service: Service, name: str
) -> None:
    made = await survey(service)
    found: list[dict[str, Any]] = []

    async def wait() -> None:
        found.extend(await service.events(types=name, wait="20"))

    with trio.fail_after(HANG_TIMEOUT_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await service.create()
            await act(service, "POST", "/tickets", title="Parcel lost")
            await respond(service, made, answers=ANSWERS)
    assert [each["type"] for each in found] == [name]


async def test_missed_extension_events_are_recovered(service: Service, receiver: Receiver) -> None:
    endpoint = await register(service, receiver.url, events=["ticket.created"])
    await ask(service, "PATCH", f"/webhooks/{endpoint['id']}", status="disabled")
    made = [await act(service, "POST", "/tickets", title=f"Parcel {number}") for number in range(3)]
    await ask(service, "PATCH", f"/webhooks/{endpoint['id']}", status="enabled")
    since = {"since": "2020-01-01T00:00:00.000Z"}
    assert (await ask(service, "POST", f"/webhooks/{endpoint['id']}/recover", **since))["count"] == 3
    sent = await got(receiver, 3)
    assert {each["data"]["ticket"]["id"] for each in sent} == {each["id"] for each in made}
    log = await ended(service, endpoint, 6)
    assert sorted(each["status"] for each in log) == [*["delivered"] * 3, *["skipped"] * 3]


async def test_an_unknown_type_is_refused_with_the_types_that_it_may_have_meant(service: Service) -> None:
    body = {"url": "http://localhost:9000/", "events": ["ticket.created", "ticket.gone", "tickets"]}
    answered = (await service.http.post("/s2s/webhooks", json=body)).json()
    near, far = answered["errors"]
    assert [each["pointer"] for each in (near, far)] == ["/events/1", "/events/2"]
    assert {each["code"] for each in (near, far)} == {"unknown_event_type"}
    assert near["message"] == (
        "There is no event type 'ticket.gone'. There is ticket.created, ticket.changed, ticket.deleted."
    )
    assert far["message"].startswith("There is no event type 'tickets'. There is conversation.created, ")
    assert far["message"].endswith(", contact.updated.")


async def test_a_machine_lists_only_types_it_may_read(service: Service) -> None:
    secret = (await make(service, ["webhooks.manage", "conversations.read", "tickets.read"]))["secret"]
    async with showing(service, secret) as machine:
        for name, status in (("ticket.created", 200), ("survey.deleted", 403), ("message.created", 200)):
            listed = await machine.get("/s2s/events", params={"types": name})
            made = await machine.post(
                "/s2s/webhooks", json={"url": "http://localhost:9000/", "events": [name]}
            )
            assert (name, listed.status_code, made.status_code) == (name, status, status)
        assert made.json()["events"] == ["message.created"]
        changed = await machine.patch(
            f"/s2s/webhooks/{made.json()['id']}", json={"events": ["contact.merged"]}
        )
        assert (changed.status_code, changed.json()["code"]) == (403, "permission_denied")
