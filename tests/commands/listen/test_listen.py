"""Forwarding against the real service and real receivers on loopback."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import orjson
import pytest
import stripe
import trio

from deskwire.commands.api_client.access import ServiceAccess
from deskwire.commands.listen.receiver import BadHeaders, parse_headers
from deskwire.commands.listen.run import ListenOptions, run_listen
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.ids import id_time_ms
from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.retry.schedule import Schedule
from tests.commands.listen.conftest import SECRET, Shown, listening, once, plan, receiving
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Request, answering
from tests.support.sockets.server_process import free_port

OK = answering("204 No Content")
NEVER = Schedule(retry_delays_s=(3_000.0, 3_000.0, 3_000.0), jitter=0, horizon_s=36_000.0)
TRANSPORT = {"host", "content-length"}


def sequences(requests: list[Request]) -> dict[str, list[int]]:
    """Return the sequences of each conversation in the order they came."""
    found: dict[str, list[int]] = defaultdict(list)
    for request in requests:
        envelope = json.loads(request.body)
        found[envelope["data"]["conversation"]["id"]].append(envelope["sequence"])
    return found


async def test_forwarded_event_equals_the_services_webhook_request(service: Service, tmp_path: Path) -> None:
    """Contract 6.3: the same bytes and headers, but for the delivery's id, and a signature that verifies."""
    async with receiving(OK) as hooked, receiving(OK) as mine:
        endpoint = (await service.http.post("/s2s/webhooks", json={"url": hooked.url})).json()
        conversation = await service.create(message={"text": "Grüße 👋"})
        await service.do(conversation, "close")
        await service.http.put("/s2s/contacts/u1", json={"name": "Ada"})
        await hooked.wait(4)
        status, _ = await once(service, mine.url, tmp_path / "state", start="beginning")
    assert status == 0
    theirs = {request.body: request for request in hooked.requests}
    assert [*sorted(theirs)] == sorted(request.body for request in mine.requests)
    for request in mine.requests:
        other = theirs[request.body]
        stripe.Webhook.construct_event(request.body, request.headers["Service-Signature"], SECRET)
        with pytest.raises(stripe.SignatureVerificationError):
            stripe.Webhook.construct_event(
                request.body, request.headers["Service-Signature"], endpoint["secret"]
            )
        assert request.path == other.path
        assert request.headers.keys() == other.headers.keys()
        differing = {name for name in other.headers if request.headers[name] != other.headers[name]}
        assert {name.lower() for name in differing} - TRANSPORT <= {
            "service-signature",
            "webhook-signature",
            "webhook-timestamp",
            "service-delivery-id",
        }
        assert request.headers["Service-Delivery-Id"].startswith("dlv_")


async def test_first_run_begins_now_and_the_next_continues_after_it(service: Service, tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with receiving(OK) as receiver:
        conversation = await service.create()
        assert (await once(service, receiver.url, state))[1].results == []
        await service.say(conversation, "one")
        assert (await once(service, receiver.url, state))[1].results == [("message.created", 2, "delivered")]
        await service.say(conversation, "two")
        await service.do(conversation, "close")
        _, shown = await once(service, receiver.url, state, secret=None)
    assert shown.results == [("message.created", 3, "delivered"), ("conversation.closed", 4, "delivered")]
    assert f"Signing secret: {SECRET}" in shown.notes  # kept with the cursor
    previous = [request.headers["Service-Previous-Sequence"] for request in receiver.requests]
    assert previous == ["0", "2", "3"]


async def test_start_at_now_is_the_end_of_a_feed_of_several_pages(service: Service, tmp_path: Path) -> None:
    conversation = await service.create()
    for _ in range(2):
        async with trio.open_nursery() as nursery:
            for number in range(110):
                nursery.start_soon(service.say, conversation, str(number))
    last = (await service.events(after=(await service.events())[-1]["id"]))[-1]
    async with receiving(OK) as receiver:
        status, shown = await once(service, receiver.url, tmp_path / "state")
        assert (status, shown.results) == (0, [])
        assert any(each.startswith(f"Starting after {last['id']};") for each in shown.notes)


async def test_start_at_now_works_before_the_first_event(service: Service, tmp_path: Path) -> None:
    async with (
        receiving(OK) as receiver,
        listening(service, receiver.url, tmp_path / "state"),
    ):
        await service.create()
        await receiver.wait(1)


async def test_new_events_are_forwarded_as_they_come_in_order(service: Service, tmp_path: Path) -> None:
    async with receiving(OK) as receiver, listening(service, receiver.url, tmp_path / "state"):
        conversations = [await service.create(user=f"u{number}") for number in range(5)]
        for conversation in conversations * 4:
            await service.say(conversation, "Hello")
        await receiver.wait(25)
    assert sequences(receiver.requests) == {each["id"]: [1, 2, 3, 4, 5] for each in conversations}


async def test_a_conversation_that_is_stuck_holds_up_itself_alone(service: Service, tmp_path: Path) -> None:
    stuck, fine = await service.create(user="u1"), await service.create(user="u2")
    let_go = trio.Event()

    async def answer(stream: trio.abc.Stream, request: Request) -> None:
        if stuck["id"].encode() in request.body:
            await let_go.wait()
        await OK(stream, request)

    async with receiving(answer) as receiver:
        async with listening(service, receiver.url, tmp_path / "state", start="beginning"):
            for conversation in (stuck, fine) * 3:
                await service.say(conversation, "Hello")
            await receiver.wait(1 + 4)
            assert sequences(receiver.requests) == {stuck["id"]: [1], fine["id"]: [1, 2, 3, 4]}
        let_go.set()
        receiver.requests.clear()
        _, shown = await once(service, receiver.url, tmp_path / "state")
    assert sequences(receiver.requests)[stuck["id"]] == [1, 2, 3, 4]  # the cursor had not passed it
    assert [step for step in shown.results if step[2] != "delivered"] == []


async def test_conversations_that_wait_for_their_next_attempt_hold_up_no_other(
    service: Service, tmp_path: Path
) -> None:
    """Let as many of them wait as there are workers, with pauses that never end."""
    failing = [await service.create(user=f"u{number}") for number in range(20)]
    for conversation in failing:
        await service.say(conversation, "bad")
    fine = await service.create(user="fine")
    await service.say(fine, "good")

    async def answer(stream: trio.abc.Stream, request: Request) -> None:
        good = fine["id"].encode() in request.body
        await answering("200 OK" if good else "500 Oops")(stream, request)

    async with (
        receiving(answer) as receiver,
        listening(service, receiver.url, tmp_path / "state", start="beginning", schedule=NEVER),
    ):
        await receiver.wait(20 + 2)
    assert sequences(receiver.requests)[fine["id"]] == [1, 2]


async def test_stuck_conversation_blocks_no_other_and_a_restart_repeats_no_event(
    service: Service, tmp_path: Path
) -> None:
    """More than what was once read ahead of the cursor."""
    stuck, let_go = await service.create(user="stuck"), trio.Event()
    fine = await service.create(user="fine")
    for _ in range(11):
        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(service.say, fine, str(number))

    async def answer(stream: trio.abc.Stream, request: Request) -> None:
        if stuck["id"].encode() in request.body:
            await let_go.wait()
        await OK(stream, request)

    state = tmp_path / "state"
    async with receiving(answer) as receiver:
        async with listening(service, receiver.url, state, start="beginning"):
            await receiver.wait(1 + 1 + 1_100)
        assert sequences(receiver.requests)[fine["id"]] == list(range(1, 1_102))
        let_go.set()
        receiver.requests.clear()
        await service.say(stuck, "Hello")
        await once(service, receiver.url, state)
    assert sequences(receiver.requests)[stuck["id"]] == [1, 2]
    assert len(sequences(receiver.requests).get(fine["id"], [])) <= 8  # under way when it ended


async def test_a_contact_that_is_stuck_holds_up_no_other(service: Service, tmp_path: Path) -> None:
    for user in ("stuck", "fine"):
        await service.create(user=user)
        await service.http.put(f"/s2s/contacts/{user}", json={"name": "Ada"})

    async def answer(stream: trio.abc.Stream, request: Request) -> None:
        if b'"userId":"stuck"' in request.body and b"contact.updated" in request.body:
            await answering("500 Oops")(stream, request)
            return
        await OK(stream, request)

    async with (
        receiving(answer) as receiver,
        listening(service, receiver.url, tmp_path / "state", start="beginning", schedule=NEVER),
    ):
        await receiver.wait(4)


async def test_custom_headers_are_added_to_those_of_the_service(service: Service, tmp_path: Path) -> None:
    await service.create()
    headers = parse_headers(["X-Tunnel: let me in", "authorization:Bearer a:b", "X-Empty:"])
    async with receiving(OK) as receiver:
        await once(service, receiver.url, tmp_path / "plain", start="beginning")
        await once(service, receiver.url, tmp_path / "more", start="beginning", headers=headers)
    plain, more = receiver.requests
    added = {name: more.headers[name] for name in more.headers.keys() - plain.headers.keys()}
    assert {name.lower(): value for name, value in added.items()} == {
        "x-tunnel": "let me in",
        "authorization": "Bearer a:b",
        "x-empty": "",
    }
    for name in plain.headers:
        with pytest.raises(BadHeaders):
            parse_headers([f"{name}: x"])


async def test_without_a_receiver_events_are_printed_with_a_place_of_its_own(
    service: Service, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    conversation = await service.create(message={"text": "Hello"})
    status, shown = await once(service, None, state, start="beginning", secret=None)
    assert (status, [each.sequence for each in shown.printed]) == (0, [1, 2])
    assert [json.loads(each.body) for each in shown.printed] == await service.events()
    assert not any("whsec_" in note for note in shown.notes)
    assert shown.notes[-1].startswith("2 printed. The next run continues after evt_")
    await service.do(conversation, "close")
    _, shown = await once(service, None, state, secret=None)
    assert [each.type for each in shown.printed] == ["conversation.closed"]
    async with receiving(OK) as receiver:  # the printed event is still to be forwarded
        await once(service, receiver.url, state, start="beginning")
        _, shown = await once(service, None, state, secret=None)
    assert (len(receiver.requests), shown.printed) == (3, [])


async def test_at_most_eight_conversations_are_forwarded_at_the_same_time(
    service: Service, tmp_path: Path
) -> None:
    full, let_go = trio.Event(), trio.Event()

    async def answer(stream: trio.abc.Stream, request: Request) -> None:
        if receiver.now == 8:
            full.set()
        await let_go.wait()
        await OK(stream, request)

    for number in range(12):
        await service.create(user=f"u{number}")
    async with (
        receiving(answer) as receiver,
        listening(service, receiver.url, tmp_path / "state", start="beginning"),
    ):
        with trio.fail_after(HANG_TIMEOUT_S):
            await full.wait()
        let_go.set()
        await receiver.wait(12)
    assert receiver.most == 8


async def test_event_refused_four_times_is_shown_as_failed_and_skipped(
    service: Service, tmp_path: Path
) -> None:
    """Contract 6.4.2."""

    async def answer(stream: trio.abc.Stream, request: Request) -> None:
        bad = json.loads(request.body)["sequence"] == 2
        await answering("500 Oops" if bad else "200 OK")(stream, request)

    conversation = await service.create(message={"text": "bad"})
    await service.say(conversation, "good")
    async with receiving(answer) as receiver:
        status, shown = await once(service, receiver.url, tmp_path / "state", start="beginning")
        again, nothing = await once(service, receiver.url, tmp_path / "state")
    assert (status, shown.results) == (
        1,
        [
            ("conversation.created", 1, "delivered"),
            ("message.created", 2, "failed"),
            ("message.created", 3, "delivered"),
        ],
    )
    assert (again, nothing.results) == (0, [])
    tries = [request for request in receiver.requests if json.loads(request.body)["sequence"] == 2]
    assert [request.headers["Service-Attempt"] for request in tries] == ["1", "2", "3", "4"]
    assert len({request.headers["Service-Delivery-Id"] for request in tries}) == 1
    assert receiver.requests[-1].headers["Service-Previous-Sequence"] == "2"


async def test_receiver_that_is_down_is_waited_for_without_counting_attempts(
    service: Service, tmp_path: Path
) -> None:
    port = free_port()
    one, other = await service.create(user="u1"), await service.create(user="u2")
    await service.say(one, "Hello")
    url = f"http://localhost:{port}/"
    async with listening(service, url, tmp_path / "state", start="beginning") as shown:
        await shown.until_noted("The receiver is down (connection refused), waiting.")
        async with receiving(OK, port) as receiver:
            await receiver.wait(3)
            await shown.until_noted("The receiver is back.")
    assert sequences(receiver.requests) == {one["id"]: [1, 2], other["id"]: [1]}
    assert {request.headers["Service-Attempt"] for request in receiver.requests} == {"1"}
    assert sum(each.startswith("The receiver is down") for each in shown.notes) == 1


async def test_only_listed_types_are_forwarded_with_the_sequence_before_each(
    service: Service, tmp_path: Path
) -> None:
    """Contract 6.2.3, decisions 6."""
    conversation = await service.create()
    for action in ("close", "reopen", "close"):
        await service.do(conversation, action)
    last = (await service.events())[-1]
    async with receiving(OK) as receiver:
        events = frozenset({"conversation.created", "conversation.reopened"})
        _, shown = await once(service, receiver.url, tmp_path / "state", start="beginning", events=events)
    got = [
        (json.loads(request.body)["sequence"], request.headers["Service-Previous-Sequence"])
        for request in receiver.requests
    ]
    assert got == [(1, "0"), (3, "1")]
    assert shown.notes[-1].endswith(f"The next run continues after {last['id']}.")


async def test_given_cursor_takes_precedence_over_the_saved_one(service: Service, tmp_path: Path) -> None:
    conversation = await service.create()
    await service.say(conversation, "one")
    first = (await service.events())[0]
    async with receiving(OK) as receiver:
        for start, expected in (("beginning", [1, 2]), (first["id"], [2]), (None, []), ("now", [])):
            receiver.requests.clear()
            await once(service, receiver.url, tmp_path / "state", start=start)
            assert [json.loads(request.body)["sequence"] for request in receiver.requests] == expected


async def test_cursor_older_than_the_stored_events_is_reported_and_the_oldest_follows(tmp_path: Path) -> None:
    async with (
        running(tmp_path / "data", event_window_s=0.0, retention_interval_s=0.05) as service,
        receiving(OK) as receiver,
    ):
        await service.create(user="u1")
        (old,) = await service.events()
        for user in ("u2", "u3"):  # the newest is never pruned
            await service.create(user=user)
        await _pruned(service, old["id"])
        _, shown = await once(service, receiver.url, tmp_path / "state", start=old["id"])
    assert shown.notes[0] == (
        f"Events after {old['id']} are no longer stored, some may be missing; continuing with the oldest."
    )
    assert shown.results[-1:] == [("conversation.created", 1, "delivered")]


async def _pruned(service: Service, after: str) -> None:
    """Return when retention has deleted the events after that one."""
    with trio.fail_after(HANG_TIMEOUT_S):
        answer = await service.http.get("/s2s/events", params={"after": after})
        while answer.status_code != 410:
            await trio.sleep(0.02)  # poll: there is no notification of retention
            answer = await service.http.get("/s2s/events", params={"after": after})


async def test_cursor_ahead_of_the_service_is_refused_with_a_remedy(service: Service, tmp_path: Path) -> None:
    await service.create()
    (event,) = await service.events()
    beyond = event["id"][:-10] + "ZZZZZZZZZZ"
    await once(service, "http://localhost:1/", tmp_path / "state")
    status, shown = await once(service, "http://localhost:1/", tmp_path / "state", start=beyond)
    assert status == 1
    assert f"no event {beyond} yet" in shown.notes[0]
    assert "--from now" in shown.notes[0]
    _, after_that = await once(service, "http://localhost:1/", tmp_path / "state")
    assert after_that.notes[-1].endswith(f"continues after {event['id']}.")  # the kept place is as it was


async def test_a_wrong_key_is_named_as_the_trouble_and_never_shown(service: Service, tmp_path: Path) -> None:
    shown = Shown()
    wrong = replace(
        plan(service, "http://localhost:1/", tmp_path),
        access=ServiceAccess(service.url, "sk_wrong_" + "x" * 20),
    )
    assert await run_listen(wrong, shown) == 1
    (line,) = shown.notes
    assert "server key is not accepted; check --key, DESKWIRE_KEY" in line
    assert "sk_wrong" not in line + repr(wrong)


async def test_something_that_is_no_deskwire_service_is_named_so(tmp_path: Path) -> None:
    async with receiving(answering("200 OK", b"<html>")) as other:
        shown = Shown()
        access = ServiceAccess(f"http://127.0.0.1:{other.port}", "sk_1")
        assert (
            await run_listen(ListenOptions(access=access, forward="http://x.test/", state=tmp_path), shown)
            == 1
        )
    assert shown.notes == ["Error: The response has no project: is this a Deskwire service?"]


async def test_unavailable_service_ends_a_run_for_scripts_with_its_reason(tmp_path: Path) -> None:
    shown = Shown()
    url = f"http://127.0.0.1:{free_port()}"
    refused = ListenOptions(
        access=ServiceAccess(url, "sk_1"), forward="http://x.test/", state=tmp_path, once=True
    )
    assert await run_listen(refused, shown) == 1
    assert shown.notes[0].startswith(f"Error: {url} can't be reached: ")


async def test_two_runs_do_not_share_a_cursor(service: Service, tmp_path: Path) -> None:
    async with receiving(OK) as receiver, listening(service, receiver.url, tmp_path / "state"):
        status, shown = await once(service, receiver.url, tmp_path / "state")
    assert status == 1
    assert "--cursor with a file of its own" in shown.notes[0]


async def test_a_cursor_that_cannot_be_written_ends_the_run(service: Service, tmp_path: Path) -> None:
    cursor = tmp_path / "state" / "cursor.json"
    async with receiving(OK) as receiver:
        shown = Shown()
        (cursor.parent / f".{cursor.name}.new").mkdir(parents=True)  # in the way of every save
        status = await run_listen(plan(service, receiver.url, tmp_path, cursor=cursor), shown)
    assert status == 1
    assert shown.notes[0].startswith(f"Error: The cursor {cursor} can't be written: ")


async def test_signatures_are_made_when_an_attempt_is(service: Service, tmp_path: Path) -> None:
    """Contract 6.3.2: an event that waited for long has a fresh `t`."""
    await service.create()
    async with receiving(OK) as receiver:
        await once(service, receiver.url, tmp_path / "state", start="beginning")
    (request,) = receiver.requests
    t = int(request.headers["Service-Signature"].partition(",")[0].removeprefix("t="))
    made: Any = orjson.loads(request.body)["id"]
    assert id_time_ms(made) // 1000 <= t <= wall_clock() // 1000
