"""The audit trail as owners read it: in pages, filtered, exported, and for no other role (ADR 45)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deskwire.engine.core.clock import iso, milliseconds
from tests.api.audit.test_sign_ins import LOCAL, attempt
from tests.api.operating.test_metrics import until
from tests.support.api.audit_trail import Record, trail, whole
from tests.support.api.planted_texts import mark, vanished
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, code, hire, organisation_of, person, sign_in
from tests.support.log_leaks import plant
from tests.support.sockets.admin_socket import operate
from tests.support.stores import stored


async def keys(service: Service, *labels: str) -> None:
    for label in labels:
        path = f"/projects/{service.demo['projectId']}/keys"
        plant((await service.dashboard.post(path, json={"label": label})).json()["key"])


async def test_pages_have_every_record_once_although_new_ones_come_between(service: Service) -> None:
    await keys(service, "a", "b", "c")
    expected = [each["id"] for each in await trail(service)]
    path, found, cursor = f"/organisations/{await organisation_of(service)}/audit", [], None
    while True:
        params: dict[str, Any] = {"limit": 3} | ({} if cursor is None else {"cursor": cursor})
        page = (await service.dashboard.get(path, params=params)).json()
        assert len(page["items"]) <= 3
        found += [each["id"] for each in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
        await keys(service, "between")
    assert found == expected


async def test_each_filter_selects_matching_records(service: Service) -> None:
    await keys(service, "a")
    owner = (await service.dashboard.get("/users/me")).json()["id"]
    project = service.demo["projectId"]
    everything = await trail(service)
    newest = everything[0]
    moment = newest["at"]
    later = iso(milliseconds(moment) + 1)
    chosen: list[tuple[dict[str, Any], Any]] = [
        ({"actor": owner}, lambda each: each["actor"]["id"] == owner),
        ({"actor": "system"}, lambda each: each["actor"]["type"] == "system"),
        ({"action": "key.created"}, lambda each: each["action"] == "key.created"),
        ({"object": project}, lambda each: each["object"]["id"] == project),
        ({"since": moment}, lambda each: each["at"] >= moment),
        ({"until": moment}, lambda each: each["at"] < moment),
        ({"since": moment, "until": later}, lambda each: each["at"] == moment),
        ({"actor": owner, "action": "project.created"}, lambda _: False),
    ]
    for params, wanted in chosen:
        assert await trail(service, **params) == [each for each in everything if wanted(each)], params


@pytest.mark.parametrize(
    "params", [{"action": "key.invented"}, {"since": "yesterday"}, {"who": "me"}, {"cursor": "x"}]
)
async def test_a_filter_that_can_not_be_meant_is_refused(service: Service, params: dict[str, str]) -> None:
    path = f"/organisations/{await organisation_of(service)}/audit"
    answer = await service.dashboard.get(path, params=params)
    assert answer.status_code == 400, answer.text


async def test_only_owners_and_admins_read_the_trail(service: Service) -> None:
    organisation = await organisation_of(service)
    await operate(service, "org.create", name="Elsewhere")
    for role, status in (("admin", 200), ("agent", 403), ("viewer", 403)):
        async with person(service, role) as someone:
            for path in ("audit", "audit.ndjson"):
                answer = await someone.http.get(f"/organisations/{organisation}/{path}")
                assert answer.status_code == status, (role, answer.text)
    (other,) = [each for each in (await operate(service, "org.list"))["items"] if each["name"] == "Elsewhere"]
    refused = await service.dashboard.get(f"/organisations/{other['id']}/audit")
    assert code(refused) == (404, "organisation_not_found")


async def test_a_tenant_sees_nothing_of_another_one(service: Service) -> None:
    await operate(service, "org.create", name="Elsewhere")
    made = await operate(service, "project.create", organisation="Elsewhere", project={"name": "Theirs"})
    plant((await operate(service, "key.create", project=made["id"], label="theirs"))["key"])
    assert "heirs" in str(await whole(service))
    assert "heirs" not in str(await trail(service))
    assert "heirs" not in (await exported(service))[0]


async def exported(service: Service, **params: str) -> tuple[str, list[Record]]:
    path = f"/organisations/{await organisation_of(service)}/audit.ndjson"
    answer = await service.dashboard.get(path, params=params)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    return answer.text, [json.loads(line) for line in answer.text.splitlines()]


async def test_export_has_the_records_of_the_list_and_its_own_record_last(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deskwire.http.resources.accounts.audit.PAGE_SIZE", 3)  # several pages of few
    await keys(service, "a", "b")
    _, records = await exported(service)
    assert records[::-1] == await trail(service)
    assert records[-1]["action"] == "audit.exported"
    _, chosen = await exported(service, action="key.created")
    assert chosen == [each for each in records if each["action"] == "key.created"]


async def test_a_deleted_users_deeds_stay_without_address_and_name(tmp_path: Path) -> None:
    """Also in the bytes of the database and its log."""
    async with running(tmp_path, trusted_proxies=LOCAL) as service:
        email, address = f"{mark('mail')}@example.com", "2001:db8:77:88::99"
        hired = await hire(service, "admin", email)
        await sign_in(service, email, hired["password"], PASSWORD)
        token = (await attempt(service, email, PASSWORD, address)).json()["token"]
        await attempt(service, email, "wrong password", address)
        acting = {"Authorization": f"Bearer {token}", "X-Forwarded-For": address}
        await service.dashboard.patch("/users/me", json={"name": mark("name")}, headers=acting)
        path = f"/projects/{service.demo['projectId']}/keys"
        plant((await service.dashboard.post(path, json={"label": "L"}, headers=acting)).json()["key"])
        assert address in str(await trail(service))
        before = await trail(service)

        answer = await service.dashboard.delete("/users/me", headers=acting)
        assert answer.status_code == 200, answer.text
        after = await trail(service)
        assert [(each["action"], each["object"]["id"], each["count"]) for each in after[1:]] == [
            (each["action"], each["object"]["id"], each["count"]) for each in before
        ]  # the member's removal is the newest record, and no older one is missing
        said = str(await whole(service))
        assert hired["id"] in said
        for gone in (email, mark("name"), address):
            assert gone not in said
        await vanished(service.directory, "mail", "name")
        assert address.encode() not in stored(tmp_path)
        assert b"2001:db8:77:88" not in stored(tmp_path)  # the network by which repetitions were counted
        (role,) = [
            each
            for each in await whole(service)
            if each["action"] == "member.added" and each["object"]["id"] == hired["id"]
        ]
        assert role["changes"] == {"role": {"before": None, "after": "admin"}}


async def test_an_erased_contact_has_another_name_in_its_records(service: Service) -> None:
    made = (await service.http.put("/s2s/contacts/u1", json={"name": "Ada"})).json()
    for _ in range(2):
        await service.http.get("/s2s/contacts/u1/export")
    exports = await trail(service, object=made["id"])
    assert [(each["action"], each["count"]) for each in exports] == [("contact.exported", 2)]
    erasure = await service.http.delete("/s2s/contacts/u1")
    records = [each for each in await trail(service) if each["action"].startswith("contact.")]
    assert [each["action"] for each in records] == ["contact.erased", "contact.exported"]
    (alias,) = {each["object"]["id"] for each in records}
    assert alias.startswith("erased_")
    assert records[0]["requestId"] == erasure.headers["X-Request-Id"]
    assert made["id"] not in str(await whole(service))


async def test_records_leave_with_their_window_and_not_before(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        assert await trail(service)
    async with running(tmp_path, audit_s=0.0, retention_interval_s=0.1) as service:
        await until(service, lambda f: f("retention_pruned_rows_total", what="audit") >= 5)
        assert await trail(service) == []
