"""Pushes of a running service: once for an event and browser, encrypted and signed, with the content as of the attempt."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from deskwire.engine.core.clock import milliseconds
from deskwire.engine.push import planning, sending
from tests.support.api.agent_stream import page
from tests.support.api.browsers import cookie_header
from tests.support.api.pushing import (
    ALL,
    SETTINGS,
    SUBSCRIPTION,
    Subscriber,
    hurry,
    pushing,
    signed_in,
    subscribed,
)
from tests.support.api.service import running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.push_service import ACCEPTED, PushService, closing, one_by_one, push_service
from tests.support.sockets.receivers import Request, answering
from tests.support.sockets.server_process import free_port
from tests.support.stores import beside

BUSY = answering("503 Service Unavailable", extra=b"Retry-After: 2\r\n")  # time for a change
DAY_S = 24 * 3600


@pytest.fixture
async def push(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PushService]:
    """Yield a push service, which services that start later trust."""
    async with push_service() as made:
        hurry(monkeypatch, made)
        yield made


async def attempted(member: Subscriber) -> None:
    """Wait until the newest push of a member has failed at least once."""
    await member.until(lambda found: bool(found) and found[-1]["detail"] is not None)


async def test_message_is_pushed_encrypted_for_the_browser_and_signed(
    tmp_path: Path, push: PushService
) -> None:
    async with pushing(tmp_path, push) as (service, member):
        made = await service.create(message={"text": "Where is my parcel?"})
        (request,) = await push.pushes(1)
        assert b"parcel" not in request.body
        event = (await service.events(types="message.created"))[0]
        assert member.browser.read(request) == {
            "title": "u1",
            "body": "Where is my parcel?",
            "projectId": service.demo["projectId"],
            "conversationId": made["id"],
            "eventId": event["id"],
            "silent": False,
        }
        claims = push.claims(request, member.public_key)
        assert claims["aud"] == push.origin
        assert 0 < claims["exp"] - milliseconds(event["createdAt"]) / 1000 <= DAY_S
        headers = {name.lower(): value for name, value in request.headers.items()}
        assert (headers["content-encoding"], headers["urgency"]) == ("aes128gcm", "high")
        assert 0 < int(headers["ttl"]) <= 4 * 3600
        assert len(headers["topic"]) == 32
        assert await member.ended() == ["accepted"]
        (shown,) = await member.pushes()
        assert (shown["status"], shown["cause"], shown["attempts"]) == ("sent", "unassigned", 1)
        assert (shown["conversationId"], shown["eventId"]) == (made["id"], event["id"])
        metrics = (await service.http.get(f"{service.url}/metrics")).text
        assert 'deskwire_web_pushes_total{reason="accepted"} 1.0' in metrics


async def test_each_message_is_pushed_once_to_each_browser(tmp_path: Path, push: PushService) -> None:
    async with pushing(tmp_path, push) as (service, first), subscribed(service, push, "admin") as second:
        conversations = [await service.create(f"u{number}", message={"text": "Hi"}) for number in range(5)]
        assert await first.ended(5) == await second.ended(5) == ["accepted"] * 5
        for member in (first, second):
            its = [each for each in push.receiver.requests if each.path == f"/push/{_name(member)}"]
            assert sorted(member.browser.read(each)["conversationId"] for each in its) == sorted(
                each["id"] for each in conversations
            )


def _name(member: Subscriber) -> str:
    return member.browser.url.rpartition("/")[2]


async def test_own_events_and_those_before_the_subscription_are_not_pushed(
    tmp_path: Path, push: PushService
) -> None:
    async with running(tmp_path) as service:
        made = await service.create(message={"text": "Before"})
        async with subscribed(service, push) as member:
            await service.say(made, "A bot's answer", author={"type": "bot", "name": "Bot"})
            await service.create("u2", message={"text": "After"})
            assert await member.ended() == ["accepted"]
        (request,) = push.receiver.requests
        assert member.browser.read(request)["body"] == "After"


async def test_without_preview_and_sound_a_push_has_only_the_name(tmp_path: Path, push: PushService) -> None:
    async with pushing(tmp_path, push) as (service, member):
        await member.http.put(SETTINGS, json={**ALL, "preview": False, "sound": False})
        await service.create("anna", message={"text": "Secret"})
        payload = member.browser.read((await push.pushes(1))[0])
        assert (payload["title"], payload["body"], payload["silent"]) == ("anna", "New message", True)


async def test_open_desk_shows_its_notifications_itself(tmp_path: Path, push: PushService) -> None:
    async with pushing(tmp_path, push) as (service, member):
        headers = {**cookie_header(member.http), "project": service.demo["projectId"]}
        async with page(member.http, headers):
            await service.create(message={"text": "Hello"})
            assert await member.ended() == ["deskOpen"]
        await service.create("u2", message={"text": "Hello"})
        assert await member.ended(2) == ["deskOpen", "accepted"]
        assert len(push.receiver.requests) == 1


async def test_desk_in_another_browser_does_not_keep_a_push_back(tmp_path: Path, push: PushService) -> None:
    async with pushing(tmp_path, push) as (service, member), page(service.dashboard):
        await service.create(message={"text": "Hello"})
        assert await member.ended() == ["accepted"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("sees it", "seen"),
        ("sees all", "seen"),
        ("wants no such notifications", "settings"),
        ("begins quiet hours", "quietHours"),
        ("turns push off", "subscriptionEnded"),
        ("signs out", "subscriptionEnded"),
        ("is removed", "accessLost"),
    ],
)
async def test_change_before_the_attempt_prevents_it_with_a_reason(
    tmp_path: Path, push: PushService, change: str, reason: str
) -> None:
    push.receiver.behaviour = BUSY
    async with pushing(tmp_path, push) as (service, member):
        made = await service.create(message={"text": "Hello"})
        await attempted(member)
        http = member.http
        project = {"project": service.demo["projectId"]}
        match change:
            case "sees it":
                answer = await http.put(
                    f"/conversations/{made['id']}/seen", json={"index": 0}, headers=project
                )
            case "sees all":
                answer = await http.put("/inbox/seen", json={}, headers=project)
            case "wants no such notifications":
                answer = await http.put(SETTINGS, json={**ALL, "unassigned": False})
            case "begins quiet hours":
                days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
                quiet = {"timeZone": "UTC", "days": days, "start": None, "end": None}
                answer = await http.put(SETTINGS, json={**ALL, "quietHours": quiet})
            case "turns push off":
                answer = await http.delete(SUBSCRIPTION)
            case "signs out":
                answer = await http.delete("/auth/session")
            case _:
                (organisation,) = (await service.dashboard.get("/organisations")).json()["items"]
                answer = await service.dashboard.delete(
                    f"/organisations/{organisation['id']}/members/{member.id}"
                )
        assert answer.status_code in (200, 204), answer.text
        push.receiver.behaviour = ACCEPTED
        with trio.fail_after(HANG_TIMEOUT_S):
            while (found := _stored(tmp_path))[0] is None:  # noqa: ASYNC110  # the member may be signed out
                await trio.sleep(0.05)  # poll: there is no notification
        assert found[0] == reason
        assert found[1] == "status 503"


def _stored(directory: Path) -> tuple[str | None, str | None]:
    with beside(directory) as connection:
        reason, detail = connection.execute("SELECT reason, detail FROM pushes").fetchone()
    return reason, detail


async def test_newer_message_replaces_a_waiting_one(tmp_path: Path, push: PushService) -> None:
    push.receiver.behaviour = BUSY
    async with pushing(tmp_path, push) as (service, member):
        made = await service.create(message={"text": "First"})
        await attempted(member)
        await service.say(made, "Second")
        await member.until(lambda found: len(found) == 2 and found[0]["reason"] is not None)
        push.receiver.behaviour = ACCEPTED
        assert await member.ended(2) == ["superseded", "accepted"]
        assert member.browser.read(push.receiver.requests[-1])["body"] == "Second"


async def test_redacted_text_is_not_in_a_later_attempt(tmp_path: Path, push: PushService) -> None:
    push.receiver.behaviour = BUSY
    async with pushing(tmp_path, push) as (service, member):
        made = await service.create(message={"text": "My card is 4111"})
        await attempted(member)
        (message,) = (await service.http.get(f"/s2s/conversations/{made['id']}/messages")).json()["items"]
        path = f"/s2s/conversations/{made['id']}/messages/{message['id']}/redact"
        answer = await service.http.post(path, json={"ranges": [{"start": 11, "end": 15}]})
        assert answer.status_code == 200, answer.text
        push.receiver.behaviour = ACCEPTED
        assert await member.ended() == ["accepted"]
        assert member.browser.read(push.receiver.requests[-1])["body"] == "My card is ****"


async def test_erased_message_is_not_pushed(tmp_path: Path, push: PushService) -> None:
    push.receiver.behaviour = BUSY
    async with pushing(tmp_path, push) as (service, member):
        made = await service.create(message={"text": "Hello"})
        await attempted(member)
        answer = await service.http.delete(f"/s2s/conversations/{made['id']}")
        assert answer.status_code == 200, answer.text
        push.receiver.behaviour = ACCEPTED
        assert await member.ended() == ["erased"]


@pytest.mark.parametrize("status", ["429 Too Many Requests", "500 Oops", "503 Service Unavailable"])
async def test_refusal_for_now_is_repeated(tmp_path: Path, push: PushService, status: str) -> None:
    push.receiver.behaviour = one_by_one(answering(status), ACCEPTED)
    async with pushing(tmp_path, push) as (service, member):
        await service.create(message={"text": "Hello"})
        assert await member.ended() == ["accepted"]
        assert [each["attempts"] for each in await member.pushes()] == [2]
        assert len(push.receiver.requests) == 2


async def test_push_service_that_asks_to_wait_gets_nothing_until_then(
    tmp_path: Path, push: PushService
) -> None:
    push.receiver.behaviour = answering("429 Too Many Requests", extra=b"Retry-After: 600\r\n")
    async with pushing(tmp_path, push) as (service, member):
        await service.create(message={"text": "Hello"})
        await attempted(member)
        await service.create("u2", message={"text": "Hello"})
        first, second = await member.until(lambda found: len(found) == 2)
        waits_ms = milliseconds(first["nextAttemptAt"]) - milliseconds(first["createdAt"])
        assert 600_000 <= waits_ms < 660_000
        assert (second["status"], second["attempts"]) == ("waiting", 0)
        assert len(push.receiver.requests) == 1


@pytest.mark.parametrize("status", ["404 Not Found", "410 Gone"])
async def test_browser_that_is_gone_loses_its_subscription(
    tmp_path: Path, push: PushService, status: str
) -> None:
    push.receiver.behaviour = answering(status)
    async with pushing(tmp_path, push) as (service, member):
        await service.create(message={"text": "Hello"})
        assert await member.ended() == ["gone"]
        assert (await member.http.get(SUBSCRIPTION)).json()["subscription"] is None
        await service.create("u2", message={"text": "Hello"})
        assert (await member.http.put(SUBSCRIPTION, json=member.browser.subscription)).status_code == 200
        assert len(push.receiver.requests) == 1


@pytest.mark.parametrize("status", ["301 Moved", "400 Bad Request", "403 Forbidden", "413 Too Large"])
async def test_final_refusal_is_not_repeated(tmp_path: Path, push: PushService, status: str) -> None:
    push.receiver.behaviour = answering(status, extra=b"Location: https://localhost/elsewhere\r\n")
    async with pushing(tmp_path, push) as (service, member):
        await service.create(message={"text": "Hello"})
        assert await member.ended() == ["refused"]
        (shown,) = await member.pushes()
        assert (shown["status"], shown["detail"]) == ("notSent", f"status {status[:3]}")
        assert (await member.http.get(SUBSCRIPTION)).json()["subscription"] is not None


async def test_request_that_may_have_arrived_is_never_repeated(tmp_path: Path, push: PushService) -> None:
    push.receiver.behaviour = one_by_one(closing(), ACCEPTED)
    async with pushing(tmp_path, push) as (service, member):
        await service.create(message={"text": "Hello"})
        assert await member.ended() == ["unanswered"]
        await service.create("u2", message={"text": "Hello"})
        assert await member.ended(2) == ["unanswered", "accepted"]
        assert len(push.receiver.requests) == 2


async def test_connection_that_fails_is_repeated_until_it_succeeds(tmp_path: Path, push: PushService) -> None:
    async with running(tmp_path) as service, subscribed(service, push) as member:
        away = {**member.browser.subscription, "endpoint": f"https://localhost:{free_port()}/push/agent"}
        assert (await member.http.put(SUBSCRIPTION, json=away)).status_code == 200
        await service.create(message={"text": "Hello"})
        await attempted(member)
        assert (await member.pushes())[0]["detail"] == "connection refused"
        assert (await member.http.put(SUBSCRIPTION, json=member.browser.subscription)).status_code == 200
        assert await member.ended() == ["accepted"]


async def test_certificate_of_a_push_service_is_verified(
    tmp_path: Path, push: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(planning, "GATHER_MS", 0)
    async with pushing(tmp_path, push) as (service, member):
        await service.create(message={"text": "Hello"})
        await attempted(member)
        assert "certificate verify failed" in (await member.pushes())[0]["detail"]
        assert push.receiver.requests == []


async def test_interrupted_attempt_is_not_repeated_after_a_restart(tmp_path: Path, push: PushService) -> None:
    async def silent(_stream: trio.abc.Stream, _request: Request) -> None:
        await trio.sleep_forever()

    push.receiver.behaviour = silent
    async with pushing(tmp_path, push) as (service, _):
        await service.create(message={"text": "Hello"})
        await push.pushes(1)
    with beside(tmp_path) as connection:
        (before,) = connection.execute("SELECT status FROM pushes").fetchone()
        connection.execute("UPDATE pushes SET due_at = 0")  # as after the time of an attempt
    assert before == "sending"
    push.receiver.behaviour = ACCEPTED
    async with running(tmp_path):
        with trio.fail_after(HANG_TIMEOUT_S):
            while _stored(tmp_path)[0] is None:  # noqa: ASYNC110
                await trio.sleep(0.05)  # poll: there is no notification
    assert _stored(tmp_path)[0] == "interrupted"
    assert len(push.receiver.requests) == 1


async def test_event_of_the_last_moment_is_pushed_by_the_next_start(
    tmp_path: Path, push: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pushing(tmp_path, push) as (service, _):
        await service.create("u0", message={"text": "Earlier"})
        await push.pushes(1)
        monkeypatch.setattr(sending, "_POLL_INTERVAL_S", 1_000_000)
        await trio.sleep(0.2)  # real time: the pause that the task has begun ends
        await service.create(message={"text": "Last"})
    with beside(tmp_path) as connection:
        (count,) = connection.execute("SELECT count(*) FROM pushes").fetchone()
    assert count == 1, "the event is only in the log"
    monkeypatch.setattr(sending, "_POLL_INTERVAL_S", 0.05)
    async with running(tmp_path):
        requests = await push.pushes(2)
    assert len(requests) == 2


async def test_event_that_is_too_old_is_listed_but_not_pushed(tmp_path: Path, push: PushService) -> None:
    push.receiver.behaviour = BUSY
    async with pushing(tmp_path, push) as (service, member):
        await service.create(message={"text": "Hello"})
        await attempted(member)
        with beside(tmp_path) as connection:
            connection.execute("UPDATE pushes SET at = at - 4 * 3600 * 1000")
        assert await member.ended() == ["expired"]


async def test_message_of_many_characters_fits_into_one_push(tmp_path: Path, push: PushService) -> None:
    async with pushing(tmp_path, push) as (service, member):
        await service.create(message={"text": "\u0001\U0001f984" * 4_000})
        payload = member.browser.read((await push.pushes(1))[0])
        assert len(payload["body"]) == 500
        assert payload["body"].endswith("…")
        assert len(json.dumps(payload)) > 500


async def test_browser_of_another_user_takes_over_a_subscription(tmp_path: Path, push: PushService) -> None:
    async with pushing(tmp_path, push) as (service, first), signed_in(service, "admin") as (_, second):
        shared = first.browser.subscription
        assert (await second.put(SUBSCRIPTION, json=shared)).status_code == 200
        assert (await first.http.get(SUBSCRIPTION)).json()["subscription"] is None
        await service.create(message={"text": "Hello"})
        await push.pushes(1)
        assert await first.pushes() == []


async def test_push_names_an_assignment_by_a_colleague(tmp_path: Path, push: PushService) -> None:
    async with pushing(tmp_path, push) as (service, member):
        made: dict[str, str] = await service.create("anna")
        assignee = {"assignee": {"type": "user", "id": member.id}}
        answer = await service.dashboard.post(f"/conversations/{made['id']}/assign", json=assignee)
        assert answer.status_code == 200, answer.text
        payload = member.browser.read((await push.pushes(1))[0])
        assert payload["body"].endswith(" assigned this conversation to you")
