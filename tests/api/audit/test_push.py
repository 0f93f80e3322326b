"""The push of the audit trail to a webhook: signed, in order, and without loss over failures and restarts (ADR 45)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest
import trio

from deskwire.engine.audit import push as pushing
from deskwire.engine.core.clock import milliseconds, wall_clock
from deskwire.engine.webhooks.signature import sign
from tests.api.events.test_channels_agree import receiving
from tests.api.operating.test_metrics import scrape
from tests.support.api.audit_trail import Record, trail, whole
from tests.support.api.machines import make
from tests.support.api.service import Service, running, tapping
from tests.support.api.staff import client, code, organisation_of, person
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.log_leaks import plant
from tests.support.sockets.admin_socket import operate
from tests.support.sockets.receivers import Receiver, Request
from tests.support.stores import beside, chosen, stored


async def path_of(service: Service) -> str:
    return f"/organisations/{await organisation_of(service)}/audit/push"


async def set_up(service: Service, receiver: Receiver) -> dict[str, Any]:
    answer = await service.dashboard.put(await path_of(service), json={"url": receiver.url})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    plant(found["secret"])
    return found


def records(requests: Iterable[Request]) -> list[Record]:
    return [record for each in requests for record in orjson.loads(each.body)["records"]]


async def arrived(receiver: Receiver, done: Callable[[list[Record]], bool]) -> list[Record]:
    """Return the records that have arrived once the condition holds for them."""
    with trio.fail_after(HANG_TIMEOUT_S):
        for count in itertools.count(1):
            await receiver.wait(count)
            found = records(receiver.requests)
            if done(found):
                return found
    raise AssertionError


def has(action: str) -> Callable[[list[Record]], bool]:
    return lambda found: any(each["action"] == action for each in found)


def failing(status: int = 503) -> Any:
    async def fail(stream: trio.abc.Stream, _: Any) -> None:
        await stream.send_all(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % status)

    return fail


async def test_records_arrive_as_the_api_shows_them_in_order_and_signed(service: Service) -> None:
    async with receiving() as receiver:
        push = await set_up(service, receiver)
        conversation = await service.create("u1", message={"text": "planted words"})
        await service.dashboard.delete(f"/conversations/{conversation['id']}")
        await make(service, ["tickets.read"])
        found = await arrived(receiver, has("credential.created"))
        shown = list(reversed(await trail(service)))
        assert [each["action"] for each in found] == [
            "audit.push_created",
            "conversation.deleted",
            "credential.created",
        ]
        assert found == [each for each in shown if each["id"] in {one["id"] for one in found}]
        for request in receiver.requests:
            headers = request.headers
            t, v1 = headers["Service-Signature"].split(",")
            assert v1 == f"v1={sign(push['secret'], int(t.removeprefix('t=')), request.body)}"
            assert headers["Service-Event"] == "audit.records"
            assert headers["Content-Type"] == "application/json"
            assert orjson.loads(request.body)["pushId"] == push["id"]
            assert headers["Service-Delivery-Id"] == orjson.loads(request.body)["records"][0]["id"]


async def test_refused_records_are_pushed_until_they_arrive(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushing, "_RETRY_DELAYS_S", (0.1,))
    async with receiving() as receiver:
        accept, receiver.behaviour = receiver.behaviour, failing()
        await set_up(service, receiver)
        for number in range(3):
            await make(service, name=f"M{number}")
        await receiver.wait(3)
        answer = (await service.dashboard.get(await path_of(service))).json()
        assert answer["pending"] >= 4
        assert answer["failingSince"] is not None
        assert answer["lastAttempt"]["status"] == 503
        figures = await scrape(service)
        assert figures("audit_pushes", state="failing") == 1
        assert figures("audit_push_waiting_records") >= 4
        assert figures("audit_push_failing_seconds") > 0
        receiver.requests.clear()
        receiver.behaviour = accept
        found = await arrived(receiver, lambda found: len(found) >= 4 and found[-1]["object"]["name"] == "M2")
        names = [each["object"]["name"] for each in found if each["action"] == "credential.created"]
        assert list(dict.fromkeys(names)) == ["M0", "M1", "M2"]
        await until_idle(service)
        answer = (await service.dashboard.get(await path_of(service))).json()
        assert (answer["pending"], answer["failingSince"], answer["missed"]) == (0, None, 0)
        assert answer["lastAttempt"]["error"] is None
        figures = await scrape(service)
        assert (figures("audit_pushes", state="good"), figures("audit_pushes", state="failing")) == (1, 0)
        assert (figures("audit_push_failing_seconds"), figures("audit_push_missed_records")) == (0, 0)


async def test_a_changed_url_takes_effect_with_the_next_batch(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Send no record to the previous receiver after the change."""
    monkeypatch.setattr(pushing, "BATCH_SIZE", 1)
    released = trio.Event()
    async with receiving() as previous, receiving() as current:
        accept = previous.behaviour

        async def hold(stream: trio.abc.Stream, request: Any) -> None:
            await released.wait()
            await accept(stream, request)

        previous.behaviour = hold
        await set_up(service, previous)
        await make(service, name="M")
        await previous.wait(1)
        moved = await service.dashboard.put(await path_of(service), json={"url": current.url})
        assert moved.status_code == 200, moved.text
        released.set()
        await arrived(current, has("audit.push_changed"))
        assert len(previous.requests) == 1


@pytest.mark.parametrize("asked", [b"9999999", b"Fri, 31 Dec 2199 23:59:59 GMT"])
async def test_a_receiver_can_put_off_the_trail_for_an_hour_at_most(service: Service, asked: bytes) -> None:
    async with receiving() as receiver:

        async def busy(stream: trio.abc.Stream, _: Any) -> None:
            head = b"HTTP/1.1 503 No\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n"
            await stream.send_all(head % asked)

        receiver.behaviour = busy
        await set_up(service, receiver)
        await receiver.wait(1)
        path = await path_of(service)
        await until(service, lambda push: push["lastAttempt"] is not None)
        due = milliseconds((await service.dashboard.get(path)).json()["nextAttemptAt"])
        assert 0 < due - wall_clock() <= 3_600_000


async def until_idle(service: Service) -> None:
    await until(service, lambda push: not push["pending"])


async def until(service: Service, done: Callable[[dict[str, Any]], bool]) -> None:
    path = await path_of(service)
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            if done((await service.dashboard.get(path)).json()):
                return
            await trio.sleep(0.05)  # the outcome is stored after the receiver has answered


async def test_nothing_is_lost_over_a_restart(tmp_path: Path) -> None:
    async with receiving() as receiver:
        accept, receiver.behaviour = receiver.behaviour, failing()
        async with running(tmp_path) as service:
            await set_up(service, receiver)
            await make(service, name="before")
            await receiver.wait(1)
        receiver.requests.clear()
        receiver.behaviour = accept
        await operate_offline(tmp_path)
        async with running(tmp_path) as service:
            found = await arrived(receiver, has("credential.created"))
            assert [each["action"] for each in found if not each["action"].startswith("token")][:2] == [
                "audit.push_created",
                "credential.created",
            ]
            await until_idle(service)


async def operate_offline(directory: Path) -> None:
    """Have the next attempt due at once, whatever the pause was."""
    with beside(directory) as connection:
        connection.execute("UPDATE audit_pushes SET due_at = NULL")


async def test_record_whose_count_has_grown_is_pushed_again_under_its_id(service: Service) -> None:
    async with receiving() as receiver:
        await set_up(service, receiver)
        async with person(service, "viewer") as viewer:
            path = f"/projects/{service.demo['projectId']}/keys"
            for calls in (1, 2):
                assert (await viewer.http.post(path, json={"label": "L"})).status_code == 403
                found = await arrived(receiver, lambda found, calls=calls: counts(found)[-1:] == [calls])  # type: ignore[misc]
        refused = [each for each in found if each["action"] == "access.refused"]
        assert len({each["id"] for each in refused}) == 1
        assert counts(found) == [1, 2]


def counts(found: list[Record]) -> list[int]:
    return [each["count"] for each in found if each["action"] == "access.refused"]


async def test_another_organisations_records_and_the_operators_stay_out(service: Service) -> None:
    async with receiving() as receiver:
        await set_up(service, receiver)
        await operate(service, "org.create", name="Elsewhere")
        async with client(service, "sk_" + "7" * 43) as http:
            assert (await http.get("/s2s/project")).status_code == 401
        await make(service)
        found = await arrived(receiver, has("credential.created"))
        assert {each["organisationId"] for each in found} == {await organisation_of(service)}
        assert any(each["action"] == "organisation.created" for each in await whole(service))


async def test_the_secret_is_shown_once_and_replaced_with_an_overlap(service: Service) -> None:
    async with receiving() as receiver:
        push, path = await set_up(service, receiver), await path_of(service)
        again = (await service.dashboard.put(path, json={"url": receiver.url})).json()
        assert again["secret"] == f"whsec_…{push['secret'][-4:]}"
        headers = {"Idempotency-Key": "r1"}
        rotated = (await service.dashboard.post(f"{path}/rotate-secret", headers=headers)).json()
        plant(rotated["secret"])
        assert rotated["oldSecretUntil"] is not None
        repeated = (await service.dashboard.post(f"{path}/rotate-secret", headers=headers)).json()
        assert repeated["secret"] == f"whsec_…{rotated['secret'][-4:]}"
        await arrived(receiver, has("audit.push_secret_rotated"))
        last = receiver.requests[-1]
        t, *signatures = last.headers["Service-Signature"].split(",")
        stamp = int(t.removeprefix("t="))
        assert signatures == [
            f"v1={sign(secret, stamp, last.body)}" for secret in (rotated["secret"], push["secret"])
        ]
        assert push["secret"].encode() not in stored(service.directory)


async def test_the_end_of_a_push_is_its_end(service: Service) -> None:
    async with receiving() as receiver:
        await set_up(service, receiver)
        await arrived(receiver, has("audit.push_created"))
        path = await path_of(service)
        assert (await service.dashboard.delete(path)).status_code == 200
        for gone in (
            service.dashboard.get(path),
            service.dashboard.delete(path),
            service.dashboard.post(f"{path}/rotate-secret"),
        ):
            assert code(await gone) == (404, "push_not_found")
        (record,) = await trail(service, action="audit.push_deleted")
        assert record["actor"]["type"] == "user"


async def test_only_readers_of_the_trail_may_push_it(service: Service) -> None:
    path = await path_of(service)
    async with person(service, "agent") as agent:
        for refused in (
            agent.http.get(path),
            agent.http.put(path, json={"url": "https://example.com/"}),
            agent.http.delete(path),
            agent.http.post(f"{path}/rotate-secret"),
        ):
            assert code(await refused) == (403, "permission_denied")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://example.com/", "url_not_https"),
        ("https://127.0.0.1/", "url_address_refused"),
        ("https://user:secret@example.com/", "url_user_info"),
        ("https://10.0.0.1/", "url_address_refused"),
        ("", "too_short"),
    ],
)
async def test_a_url_has_to_be_public_and_https(tmp_path: Path, url: str, reason: str) -> None:
    async with running(tmp_path, allow_private_webhooks=False) as service:
        refused = await service.dashboard.put(await path_of(service), json={"url": url})
        assert refused.status_code == 422
        assert reason in {each["code"] for each in refused.json()["errors"]}


async def test_records_that_retention_removes_first_are_counted_as_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = tapping(monkeypatch)
    async with receiving() as receiver, running(tmp_path) as service:
        receiver.behaviour = failing()
        await set_up(service, receiver)
        await make(service)
        await receiver.wait(1)
        await stores[0].write(lambda tx: tx.prune_audit(1 << 60, 1_000))
        answer = (await service.dashboard.get(await path_of(service))).json()
        assert answer["missed"] >= 2
        assert answer["pending"] == 0


@pytest.mark.skipif(chosen() == "postgres", reason="nodes get the new secret by a restart")
async def test_a_rotated_installation_secret_still_signs_pushes(service: Service) -> None:
    async with receiving() as receiver:
        push = await set_up(service, receiver)
        await arrived(receiver, has("audit.push_created"))
        await operate(service, "secret.rotate", overlapS=0)
        token = (
            await service.http.post(
                "/auth/token",
                json={"email": service.demo["user"]["email"], "password": service.demo["user"]["password"]},
                headers={"Authorization": ""},
            )
        ).json()
        found = await arrived(receiver, has("sign_in.succeeded"))
        last = receiver.requests[-1]
        stamp = int(last.headers["Service-Signature"].split(",")[0].removeprefix("t="))
        assert f"v1={sign(push['secret'], stamp, last.body)}" in last.headers["Service-Signature"]
        assert found
        assert token["id"]
