"""Records of the audit trail: one for each change that the trail covers, by every route and every command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from deskwire.commands.admin.context import LOOKS, OPERATIONS
from deskwire.config.parsers import networks
from deskwire.engine.audit.actions import ACTIONS
from deskwire.http.api.app import ROUTES
from tests.api.events.test_channels_agree import receiving, register
from tests.support.api.audit_trail import Record, trail, whole
from tests.support.api.browsers import PAGE, browser, enter, staff
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, client, hire, organisation_of, person, sign_in
from tests.support.log_leaks import plant
from tests.support.sockets.admin_socket import operate

RECORDED: Final = {route.operation_id: route for route in ROUTES if route.records}
CLIENT: Final = "203.0.113.7"
LOCAL: Final = networks("127.0.0.0/8")
NEW_PASSWORD: Final = plant("another long password")


def test_every_route_that_changes_something_says_what_it_records_or_why_nothing() -> None:
    silent = [
        route.operation_id
        for route in ROUTES
        if route.method != "GET" and bool(route.records) == bool(route.unrecorded.strip())
    ]
    assert silent == [], "give it `records=(…)`, or `unrecorded=` with the reason"
    assert {action for route in RECORDED.values() for action in route.records} <= ACTIONS.keys()


def test_what_changes_the_recorded_things_has_no_reason_to_be_silent() -> None:
    """Check every route below the paths of recorded objects."""
    about = ("/organisations", "/projects/", "/users/me", "/auth/", "/s2s/webhooks", "/s2s/deliveries")
    silent = {
        route.operation_id
        for route in ROUTES
        if route.method != "GET" and route.unrecorded and route.path.removeprefix("/v3").startswith(about)
    }
    assert silent == {"testEndpoint"}


@dataclass
class Stage:
    """A service with a webhook receiver; what calls have answered."""

    service: Service
    receiver: str

    @property
    def backend(self) -> httpx.AsyncClient:
        return self.service.http

    @property
    def owner(self) -> httpx.AsyncClient:
        return self.service.dashboard

    async def endpoint(self) -> str:
        return f"/s2s/webhooks/{(await register(self.service, self.receiver))['id']}"

    async def project(self) -> str:
        path = f"/organisations/{await organisation_of(self.service)}/projects"
        return f"/projects/{(await self.owner.post(path, json={'name': 'P'})).json()['id']}"

    async def key(self) -> str:
        path = f"/projects/{self.service.demo['projectId']}/keys"
        made = (await self.owner.post(path, json={"label": "L"})).json()
        plant(made["key"])
        return f"{path}/{made['id']}"

    async def members(self) -> str:
        return f"/organisations/{await organisation_of(self.service)}/members"

    async def contact(self) -> dict[str, Any]:
        answer: dict[str, Any] = (await self.backend.put("/s2s/contacts/u1", json={"name": "Ada"})).json()
        return answer

    async def delivery(self) -> tuple[str, str]:
        path = await self.endpoint()
        return path, (await self.backend.post(f"{path}/test")).json()["id"]


Call = Callable[[], Awaitable[httpx.Response]]
Prepare = Callable[[Stage], Awaitable[tuple[Call, str, dict[str, Any]]]]
"""Makes what a call needs; the call, the actor it is made by, and what its record must have."""


def done(call: Call, actor: str, **expected: Any) -> tuple[Call, str, dict[str, Any]]:
    return call, actor, expected


async def rename(stage: Stage) -> Any:
    path = f"/organisations/{await organisation_of(stage.service)}"
    return done(
        lambda: stage.owner.patch(path, json={"name": "Other"}),
        "user",
        changes={"name": {"before": "Demo organisation", "after": "Other"}},
    )


async def create_project(stage: Stage) -> Any:
    path = f"/organisations/{await organisation_of(stage.service)}/projects"
    return done(lambda: stage.owner.post(path, json={"name": "P"}), "user")


async def change_project(stage: Stage) -> Any:
    path = f"/projects/{stage.service.demo['projectId']}"
    body = {"settings": {"archivedRetentionDays": 9, "memoryEnabled": False}}
    changes = {
        "archivedRetentionDays": {"before": 365, "after": 9},
        "memoryEnabled": {"before": True, "after": False},
    }
    return done(lambda: stage.owner.patch(path, json=body), "user", changes=changes)


async def delete_project(stage: Stage) -> Any:
    path = await stage.project()
    return done(lambda: stage.owner.delete(path), "user")


async def create_key(stage: Stage) -> Any:
    path = f"/projects/{stage.service.demo['projectId']}/keys"
    changes = {"label": {"before": None, "after": "CRM"}}
    return done(lambda: stage.owner.post(path, json={"label": "CRM"}), "user", changes=changes)


async def revoke_key(stage: Stage) -> Any:
    path = await stage.key()
    return done(lambda: stage.owner.post(f"{path}/revoke"), "user")


async def add_member(stage: Stage) -> Any:
    path, body = await stage.members(), {"email": "ada@example.com", "role": "agent"}
    changes = {"role": {"before": None, "after": "agent"}}
    return done(lambda: stage.owner.post(path, json=body), "user", changes=changes)


async def change_member(stage: Stage) -> Any:
    path = f"{await stage.members()}/{(await hire(stage.service, 'agent'))['id']}"
    changes = {"role": {"before": "agent", "after": "admin"}}
    return done(lambda: stage.owner.patch(path, json={"role": "admin"}), "user", changes=changes)


async def remove_member(stage: Stage) -> Any:
    path = f"{await stage.members()}/{(await hire(stage.service, 'agent'))['id']}"
    changes = {"role": {"before": "agent", "after": None}}
    return done(lambda: stage.owner.delete(path), "user", changes=changes)


async def change_me(stage: Stage) -> Any:
    changes = {"name": {"before": "Demo owner", "after": "Ada"}}
    return done(lambda: stage.owner.patch("/users/me", json={"name": "Ada"}), "user", changes=changes)


async def delete_me(stage: Stage) -> Any:
    hired = await hire(stage.service, "agent")
    token = (await sign_in(stage.service, hired["email"], hired["password"], PASSWORD)).json()["token"]

    async def leave() -> httpx.Response:
        async with client(stage.service, token) as http:
            return await http.delete("/users/me")

    return done(leave, "user", address=None)  # hers is gone with her


async def set_password(stage: Stage) -> Any:
    body = {"password": stage.service.demo["user"]["password"], "newPassword": NEW_PASSWORD}

    async def change() -> httpx.Response:
        answer = await stage.owner.post("/users/me/password", json=body)
        stage.owner.headers["Authorization"] = f"Bearer {answer.json()['token']}"  # the old one has ended
        return answer

    return done(change, "user")


async def issue_token(stage: Stage) -> Any:
    user = stage.service.demo["user"]
    return done(lambda: sign_in(stage.service, user["email"], user["password"]), "user")


def page_of(stage: Stage, cookies: httpx.Cookies | None = None) -> httpx.AsyncClient:
    """A browser with these cookies; use it as a context."""
    page = browser(stage.service, {**PAGE, "X-Forwarded-For": CLIENT})
    page.cookies.update(cookies)
    return page


async def session_of(stage: Stage, email: str, password: str = PASSWORD) -> httpx.Cookies:
    """The cookies of somebody who has signed in with a browser."""
    async with page_of(stage) as page:
        assert (await enter(page, email, password)).status_code == 200
        return page.cookies


async def owners_session(stage: Stage) -> httpx.Cookies:
    user = stage.service.demo["user"]
    return await session_of(stage, user["email"], user["password"])


async def start_session(stage: Stage) -> Any:
    user = stage.service.demo["user"]

    async def start() -> httpx.Response:
        async with page_of(stage) as page:
            return await enter(page, user["email"], user["password"])

    return done(start, "user")


async def end_session(stage: Stage) -> Any:
    cookies = await owners_session(stage)

    async def end() -> httpx.Response:
        async with page_of(stage, cookies) as page:
            return await page.delete("/auth/session")

    return done(end, "user")


async def end_session_by_id(stage: Stage) -> Any:
    await owners_session(stage)
    (session,) = (await stage.owner.get("/users/me/sessions")).json()["items"]
    return done(lambda: stage.owner.delete(f"/users/me/sessions/{session['id']}"), "user")


async def end_sessions(stage: Stage) -> Any:
    await owners_session(stage)
    cookies = await owners_session(stage)

    async def end() -> httpx.Response:
        async with page_of(stage, cookies) as page:
            return await page.delete("/users/me/sessions", params={"others": "true"})

    return done(end, "user")


async def end_member_sessions(stage: Stage) -> Any:
    hired = await staff(stage.service, "agent")
    await session_of(stage, hired["email"])
    path = f"{await stage.members()}/{hired['id']}/sessions"
    return done(lambda: stage.owner.delete(path), "user")


async def create_endpoint(stage: Stage) -> Any:
    url, _, _ = stage.receiver.partition("?")
    body = {"url": f"{url}?token=hidden", "description": "CRM"}
    changes = {
        "url": {"before": None, "after": f"{url}?…"},
        "events": {"before": None, "after": []},
        "description": {"before": None, "after": "CRM"},
        "catchUp": {"before": None, "after": "automatic"},
    }
    return done(lambda: stage.backend.post("/s2s/webhooks", json=body), "server_key", changes=changes)


async def change_endpoint(stage: Stage) -> Any:
    path = await stage.endpoint()
    changes = {"description": {"before": None, "after": "x"}}
    return done(lambda: stage.backend.patch(path, json={"description": "x"}), "server_key", changes=changes)


async def rotate_secret(stage: Stage) -> Any:
    path = await stage.endpoint()
    return done(lambda: stage.backend.post(f"{path}/rotate-secret"), "server_key", changes={})


async def delete_endpoint(stage: Stage) -> Any:
    path = await stage.endpoint()
    return done(lambda: stage.backend.delete(path), "server_key", details={"pendingDropped": 0})


async def redeliver(stage: Stage) -> Any:
    _, delivery = await stage.delivery()
    path = f"/s2s/deliveries/{delivery}/redeliver"
    return done(lambda: stage.backend.post(path), "server_key", details={"deliveries": 1})


async def recover(stage: Stage) -> Any:
    path = await stage.endpoint()
    await stage.backend.patch(path, json={"status": "disabled"})
    await stage.service.create("u1", message={"text": "Hello"})
    await stage.backend.patch(path, json={"status": "enabled"})
    body = {"since": "2026-01-01T00:00:00Z"}
    return done(
        lambda: stage.backend.post(f"{path}/recover", json=body), "server_key", details={"deliveries": 2}
    )


async def delete_contact(stage: Stage) -> Any:
    await stage.contact()
    return done(lambda: stage.backend.delete("/s2s/contacts/u1"), "server_key")


async def export_contact(stage: Stage) -> Any:
    await stage.contact()
    return done(lambda: stage.backend.get("/s2s/contacts/u1/export"), "server_key")


async def export_contact_with_notes(stage: Stage) -> Any:
    path = f"/contacts/{(await stage.contact())['id']}/export"
    return done(lambda: stage.owner.get(path), "user")


async def import_history(stage: Stage) -> Any:
    lines = (
        b'{"type":"conversation","externalId":"a","contact":{"userId":"u9"},"createdAt":"2024-01-01T00:00:00Z"}\n'
        b'{"type":"message","externalId":"b","conversation":"a","author":{"type":"contact"},"text":"x",'
        b'"createdAt":"2024-01-01T00:00:00Z"}\n'
    )
    headers = {"Content-Type": "application/x-ndjson"}
    return done(
        lambda: stage.backend.post("/s2s/import", content=lines, headers=headers),
        "server_key",
        details={"conversations": 1, "messages": 1},
    )


async def export_audit_records(stage: Stage) -> Any:
    path = f"/organisations/{await organisation_of(stage.service)}/audit.ndjson"
    return done(lambda: stage.owner.get(path), "user")


CALLS: Final[Mapping[str, tuple[Prepare, str]]] = {
    "changeOrganisation": (rename, "organisation.changed"),
    "createProject": (create_project, "project.created"),
    "changeProject": (change_project, "project.changed"),
    "deleteProject": (delete_project, "project.deleted"),
    "createKey": (create_key, "key.created"),
    "revokeKey": (revoke_key, "key.revoked"),
    "addMember": (add_member, "member.added"),
    "changeMember": (change_member, "member.role_changed"),
    "removeMember": (remove_member, "member.removed"),
    "changeMe": (change_me, "account.changed"),
    "deleteMe": (delete_me, "member.removed"),
    "setPassword": (set_password, "account.password_changed"),
    "issueToken": (issue_token, "sign_in.succeeded"),
    "startSession": (start_session, "sign_in.succeeded"),
    "endSession": (end_session, "account.sessions_ended"),
    "endSessionById": (end_session_by_id, "account.sessions_ended"),
    "endSessions": (end_sessions, "account.sessions_ended"),
    "endMemberSessions": (end_member_sessions, "account.sessions_ended"),
    "createEndpoint": (create_endpoint, "webhook.created"),
    "changeEndpoint": (change_endpoint, "webhook.changed"),
    "rotateSecret": (rotate_secret, "webhook.secret_rotated"),
    "deleteEndpoint": (delete_endpoint, "webhook.deleted"),
    "redeliver": (redeliver, "webhook.replayed"),
    "recover": (recover, "webhook.replayed"),
    "deleteContact": (delete_contact, "contact.erased"),
    "exportContact": (export_contact, "contact.exported"),
    "exportContactWithNotes": (export_contact_with_notes, "contact.exported"),
    "importHistory": (import_history, "history.imported"),
    "exportAuditRecords": (export_audit_records, "audit.exported"),
}
"""A call of every recorded route, and the action that it leaves."""


def test_every_recorded_route_is_called_here() -> None:
    assert CALLS.keys() == RECORDED.keys()
    assert all(action in RECORDED[name].records for name, (_, action) in CALLS.items())


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_leaves_its_record(tmp_path: Path, name: str) -> None:
    prepare, action = CALLS[name]
    async with (
        receiving() as receiver,
        running(tmp_path, trusted_proxies=LOCAL) as service,
    ):
        service.http.headers["X-Forwarded-For"] = service.dashboard.headers["X-Forwarded-For"] = CLIENT
        call, actor, expected = await prepare(Stage(service, receiver.url))
        before = {each["id"] for each in await trail(service)}
        answer = await call()
        assert answer.status_code == 200, answer.text
        new = [each for each in await trail(service) if each["id"] not in before]
        (record,) = [each for each in new if each["action"] == action]
        assert {each["requestId"] for each in new} == {answer.headers["X-Request-Id"]}
        assert {each["action"] for each in new} <= set(RECORDED[name].records)
        assert_says(record, {"address": CLIENT, "count": 1, **expected})
        assert {each["actor"]["type"] for each in new} == {actor}
        assert record["actor"]["id"] is not None
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
    "project.create": ({"project": {"name": "P"}}, {"project.created"}),
    "project.set": ({"change": {"name": "P"}}, {"project.changed"}),
    "user.create": ({"email": "b@example.com", "role": "agent"}, {"account.created", "member.added"}),
    "user.password": ({"user": "agent@example.com"}, {"account.password_changed"}),
    "user.add": ({"user": "stray@example.com", "role": "agent"}, {"member.added"}),
    "user.role": ({"user": "agent@example.com", "role": "viewer"}, {"member.role_changed"}),
    "user.remove": ({"user": "agent@example.com"}, {"member.removed"}),
    "user.delete": ({"user": "agent@example.com"}, {"member.removed", "account.deleted"}),
    "key.create": ({"label": "L"}, {"key.created"}),
    "key.revoke": ({}, {"key.revoked"}),
    "token.create": ({"user": "agent@example.com", "ttlS": 60}, {"token.issued"}),
    "secret.rotate": ({"overlapS": 60}, {"secret.rotated"}),
}
"""An order of each kind that changes something, and what it leaves."""


def test_every_order_that_changes_something_is_given_here() -> None:
    assert ORDERS.keys() == OPERATIONS.keys() - LOOKS


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
    before = {each["id"] for each in await of_all(service)}
    answer = await operate(service, operation, **arguments)
    for secret in {"key", "token", "password"} & answer.keys():
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
    ]


async def test_a_disabled_endpoint_says_how_much_it_drops(service: Service) -> None:
    endpoint = await register(service, "http://127.0.0.1:65535/")  # nobody is there
    path = f"/s2s/webhooks/{endpoint['id']}"
    await service.create("u1", message={"text": "Hello"})
    for status in ("disabled", "enabled"):
        await service.http.patch(path, json={"status": status})
    enabled, disabled, _ = await trail(service, object=endpoint["id"])
    assert (enabled["action"], enabled["details"]) == ("webhook.enabled", {})
    assert (disabled["action"], disabled["details"]) == ("webhook.disabled", {"pendingDropped": 2})
    assert disabled["changes"] == {"status": {"before": "enabled", "after": "disabled"}}


async def test_a_project_that_goes_takes_its_keys_along_and_both_are_recorded(service: Service) -> None:
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
