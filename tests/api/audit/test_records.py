"""Records of the audit trail: one for each change that the trail covers, by every route and every command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from deskwire.config.parsers import networks
from deskwire.engine.audit.actions import ACTIONS
from deskwire.http.api.routing import Media, Route
from deskwire.http.app import ROUTES
from deskwire.program.admin_context import OPERATIONS
from tests.api.audit.calls import CALLS
from tests.api.audit.stage import CLIENT, Stage
from tests.api.events.test_channels_agree import receiving, register
from tests.support.api.audit_trail import Record, trail, whole
from tests.support.api.machines import make
from tests.support.api.openid import provider
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, hire, organisation_of, person, sign_in
from tests.support.log_leaks import plant
from tests.support.sockets.admin_socket import operate
from tests.support.sockets.issuer import issuing

RECORDED: Final = {route.operation_id: route for route in ROUTES if route.records}
LOCAL: Final = networks("127.0.0.0/8")


def test_every_changing_route_declares_its_record_or_a_reason_for_none() -> None:
    silent = [
        route.operation_id
        for route in ROUTES
        if route.method != "GET" and bool(route.records) == bool(route.unrecorded.strip())
    ]
    assert silent == [], "give it `records=(…)`, or `unrecorded=` with the reason"
    assert {action for route in RECORDED.values() for action in route.records} <= ACTIONS.keys()


def test_changes_of_recorded_objects_have_no_reason_to_be_unrecorded() -> None:
    """Check every route below the paths of recorded objects."""
    about = ("/organisations", "/projects/", "/users/me", "/auth/", "/s2s/webhooks", "/s2s/deliveries")
    silent = {
        route.operation_id
        for route in ROUTES
        if route.method != "GET" and route.unrecorded and route.path.removeprefix("/v3").startswith(about)
    }
    # Options of a passkey and the secret of an app change no account: the factor is recorded once it is confirmed.
    begun = {
        "beginPasskey",
        "beginTotp",
        "getFactorPasskeyOptions",
        "getPasskeyOptions",
        "getProofPasskeyOptions",
    }
    # The queue of mails records the link when it makes one; the call is the same for an unknown address.
    # Users choose their own notifications.
    own = {"putNotificationSettings", "putPushSubscription", "deletePushSubscription"}
    assert silent == {"testEndpoint", "inspectLink", "requestPasswordLink", *begun, *own}


def exports(route: Route) -> bool:
    """Whether a route hands out many objects at once, as a file."""
    media = isinstance(route.answer, Media) and route.answer.content_type in (
        "application/x-ndjson",
        "text/csv",
    )
    named = route.operation_id.startswith("export") or "/export" in route.path
    return route.method == "GET" and (media or named)


def test_every_deletion_and_every_export_is_recorded() -> None:
    silent = {
        each.operation_id for each in ROUTES if each.method == "DELETE" or exports(each)
    } - RECORDED.keys()
    # A message that is taken back is its author's own, was seen by no one else, and is the author's draft again.
    # Customers sign out of their own browsers, and visitors come and go without limit. Users choose what they follow, and
    # which of their browsers are notified. A contact who waits again is in the conversation's activity.
    own = {
        "takeBackMessage",
        "endCustomerSession",
        "unfollowConversation",
        "deletePushSubscription",
        "waitAgain",
    }
    assert silent == own, "give it `records=(…)`"
    assert sum(map(exports, ROUTES)) >= 13, "they are found by their media types and names"


def test_every_recorded_route_is_called_here() -> None:
    assert CALLS.keys() == RECORDED.keys()
    assert all(action in RECORDED[name].records for name, (_, action) in CALLS.items())


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_leaves_its_record(tmp_path: Path, name: str) -> None:
    prepare, action = CALLS[name]
    async with (
        receiving() as receiver,
        issuing() as issuer,
        running(
            tmp_path / "data", trusted_proxies=LOCAL, oidc_named=(provider(tmp_path, issuer.url),)
        ) as service,
    ):
        service.http.headers["X-Forwarded-For"] = service.dashboard.headers["X-Forwarded-For"] = CLIENT
        call, actor, expected = await prepare(Stage(service, receiver.url, issuer=issuer))
        before = {each["id"] for each in await trail(service)}
        answer = await call()
        assert answer.status_code in (200, 303), answer.text
        new = [each for each in await trail(service) if each["id"] not in before]
        (record,) = [each for each in new if each["action"] == action]
        assert {each["requestId"] for each in new} == {answer.headers["X-Request-Id"]}
        assert {each["action"] for each in new} <= set(RECORDED[name].records)
        assert_says(record, {"address": CLIENT, "count": 1, **expected})
        assert {each["actor"]["type"] for each in new} == {actor}
        assert (record["actor"]["id"] is None) == (actor == "anonymous")
        assert {each["organisationId"] for each in new} == {await organisation_of(service)}


def assert_says(record: Record, expected: Mapping[str, Any]) -> None:
    assert {name: record[name] for name in expected} == expected


async def test_a_call_that_changes_nothing_leaves_no_record(service: Service) -> None:
    organisation, project = await organisation_of(service), service.demo["projectId"]
    hired = await hire(service, "agent")
    async with receiving() as receiver:
        stage = Stage(service, receiver.url)
        endpoint, key = await stage.endpoint(), await stage.key()
        await service.dashboard.post(f"{key}/revoke")
        before = await trail(service)
        for sent in (
            service.dashboard.patch(f"/organisations/{organisation}", json={"name": "Demo organisation"}),
            service.dashboard.patch(f"/projects/{project}", json={"settings": {"memoryEnabled": True}}),
            service.dashboard.patch(
                f"/organisations/{organisation}/members/{hired['id']}", json={"role": "agent"}
            ),
            service.dashboard.patch("/users/me", json={"name": "Demo owner"}),
            service.dashboard.post(f"{key}/revoke"),
            service.http.patch(endpoint, json={"status": "enabled"}),
            service.http.post(f"{endpoint}/recover", json={"since": "2026-01-01T00:00:00Z"}),
        ):
            answer = await sent
            assert answer.status_code == 200, answer.text
        refused = await service.dashboard.post(f"/projects/{project}/keys", json={"label": ""})
        assert refused.status_code == 422
        refused = await service.dashboard.delete(f"/projects/{project}")
        assert refused.status_code == 409
        assert await trail(service) == before


async def test_a_call_that_is_sent_twice_leaves_one_record(service: Service) -> None:
    path = f"/projects/{service.demo['projectId']}/keys"
    for _ in range(2):
        answer = await service.dashboard.post(path, json={"label": "L"}, headers={"Idempotency-Key": "k"})
        plant(answer.json()["key"])
    assert len(await trail(service, action="key.created")) == 2  # the demo's is the other one


ORDERS: Final[Mapping[str, tuple[dict[str, Any], set[str]]]] = {
    "org.create": ({"name": "Acme"}, {"organisation.created"}),
    "org.rename": ({"name": "Other"}, {"organisation.changed"}),
    "org.delete": (
        {"organisation": "Demo organisation"},
        {"organisation.deleted", "project.deleted", "key.revoked", "member.removed"},
    ),
    "project.create": ({"project": {"name": "P"}}, {"project.created"}),
    "project.set": ({"change": {"name": "P"}}, {"project.changed"}),
    "user.create": ({"email": "b@example.com", "role": "agent"}, {"account.created", "member.added"}),
    "user.reset-factors": (
        {"user": "agent@example.com"},
        {"account.factors_reset", "account.tokens_revoked"},
    ),
    "user.password": ({"user": "agent@example.com"}, {"account.password_changed"}),
    "user.add": ({"user": "stray@example.com", "role": "agent"}, {"member.added"}),
    "user.role": ({"user": "agent@example.com", "role": "viewer"}, {"member.role_changed"}),
    "user.remove": ({"user": "agent@example.com"}, {"member.removed"}),
    "user.delete": ({"user": "agent@example.com"}, {"member.removed", "account.deleted"}),
    "key.create": ({"label": "L"}, {"key.created"}),
    "key.revoke": ({}, {"key.revoked"}),
    "credential.create": ({"name": "N", "permissions": ["tickets.read"]}, {"credential.created"}),
    "credential.rotate": ({}, {"credential.rotated"}),
    "credential.revoke": ({}, {"credential.revoked"}),
    "token.create": ({"user": "agent@example.com", "ttlS": 60}, {"token.issued"}),
    "token.end": ({}, {"token.ended"}),
    "secret.rotate": ({"overlapS": 60}, {"secret.rotated"}),
}
"""An order of each kind that changes something, and what it leaves."""


UNRECORDED: Final[Mapping[str, str]] = {
    "mail.test": "it sends a mail, and changes nothing",
    "user.first-owner-link": "there is no account yet that could use or read a record",
}


def test_every_order_that_changes_something_is_given_here() -> None:
    assert ORDERS.keys() | UNRECORDED.keys() == OPERATIONS.keys()


async def of_all(service: Service) -> list[dict[str, Any]]:
    """The newest records of all organisations, and of none, as the operator sees them."""
    found: list[dict[str, Any]] = (await operate(service, "audit.list", limit=200))["items"]
    return found


@pytest.mark.parametrize("operation", ORDERS)
async def test_an_order_leaves_its_record(service: Service, operation: str) -> None:
    arguments, actions = ORDERS[operation]
    await hire(service, "agent")
    await operate(service, "user.create", email="stray@example.com", password=PASSWORD)
    if operation == "key.revoke":
        arguments = {"key": (await trail(service, action="key.created"))[0]["object"]["id"]}
    if operation in ("credential.rotate", "credential.revoke"):
        arguments = {"credential": (await make(service))["id"]}
    if operation == "token.end":
        issued = await operate(service, "token.create", user="agent@example.com", ttlS=60)
        plant(issued["token"])
        arguments = {"token": issued["id"]}
    before = {each["id"] for each in await of_all(service)}
    answer = await operate(service, operation, **arguments)
    for secret in {"key", "token", "password", "secret"} & answer.keys():
        plant(answer[secret])
    new = [each for each in await of_all(service) if each["id"] not in before]
    assert {each["action"] for each in new} == actions
    assert {each["actor"]["type"] for each in new} == {"operator"}
    assert all(each["actor"]["id"] for each in new)


async def test_the_first_start_says_that_the_program_itself_made_the_demo(service: Service) -> None:
    first = await whole(service)
    assert {each["actor"]["type"] for each in first} == {"system"}
    assert [each["action"] for each in first] == [
        "organisation.created",
        "project.created",
        "account.created",
        "member.added",
        "key.created",
        "channel.created",
    ]


async def test_a_disabled_endpoint_says_how_much_it_drops(service: Service) -> None:
    endpoint = await register(service, "http://127.0.0.1:65535/")  # no server listens there
    path = f"/s2s/webhooks/{endpoint['id']}"
    await service.create("u1", message={"text": "Hello"})
    for status in ("disabled", "enabled"):
        await service.http.patch(path, json={"status": status})
    enabled, disabled, _ = await trail(service, object=endpoint["id"])
    assert (enabled["action"], enabled["details"]) == ("webhook.enabled", {})
    assert (disabled["action"], disabled["details"]) == ("webhook.disabled", {"pendingDropped": 2})
    assert disabled["changes"] == {"status": {"before": "enabled", "after": "disabled"}}


async def test_removed_project_revokes_its_keys_and_both_are_recorded(service: Service) -> None:
    path = await Stage(service, "").project()
    made = (await service.dashboard.post(f"{path}/keys", json={"label": "L"})).json()
    plant(made["key"])
    await service.dashboard.delete(path)
    deleted, revoked, *_ = await trail(service)
    assert (deleted["action"], deleted["object"]["name"]) == ("project.deleted", "P")
    assert (revoked["action"], revoked["object"]["id"]) == ("key.revoked", made["id"])


async def test_no_secret_is_in_any_record(service: Service) -> None:
    """Search the records for every secret that the tests of this file have made."""
    async with person(service, "admin") as admin, receiving() as receiver:
        endpoint = await register(service, f"{receiver.url}&token=hidden-in-query")
        rotated = (await service.http.post(f"/s2s/webhooks/{endpoint['id']}/rotate-secret")).json()
        await sign_in(service, admin.email, plant("a wrong password here"))
        said = str(await whole(service))
        for secret in (
            *(PASSWORD, "a wrong password here", service.demo["serverKey"], service.demo["token"]),
            *(endpoint["secret"], rotated["secret"], admin.token, "hidden-in-query", "$argon2"),
        ):
            assert secret not in said
