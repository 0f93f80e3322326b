"""Channels through the wire: their life, their secrets, and the refusals of wrong settings."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import trio
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from deskwire.engine.channels import channel as engine
from deskwire.http.resources.channels import channels as resource
from tests.support.api.audit_trail import trail
from tests.support.api.machines import make, showing
from tests.support.api.service import Service
from tests.support.api.staff import code, organisation_of, person
from tests.support.api.surveys import survey
from tests.support.log_leaks import plant

UNKNOWN = "chn_00000000000000000000000000"
EC = ec.generate_private_key(ec.SECP256R1())


def pem(key: Any) -> str:
    """Return the public key of a pair in PEM."""
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return str(public.decode())


async def made(http: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    """Make a channel; return it."""
    answer = await http.post("/channels", json={"name": "Shop", **fields})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    plant(found["identity"]["secret"])
    return found


def masked(channel: dict[str, Any]) -> dict[str, Any]:
    """Return a channel as it is shown from its creation on."""
    identity = channel["identity"]
    return {**channel, "identity": {**identity, "secret": f"chs_…{identity['secret'][-4:]}"}}


def problems(answer: httpx.Response) -> list[tuple[str, str]]:
    """Return pointer and code of each problem of a refused body."""
    assert answer.status_code == 422, answer.text
    return sorted((each["pointer"], each["code"]) for each in answer.json()["errors"])


async def test_a_channel_is_made_read_changed_and_deleted(service: Service) -> None:
    shop = await made(service.dashboard)
    assert shop == {
        "id": shop["id"],
        "type": "widget",
        "name": "Shop",
        "enabled": True,
        "origins": [],
        "identity": {
            "mode": "optional",
            "publicKeys": [],
            "secret": shop["identity"]["secret"],
            "previousSecretExpiresAt": None,
        },
        "visitors": {"allowed": True, "ask": []},
        "look": {"colour": "#1f5eff", "position": "right", "texts": {}},
        "hours": None,
        "startsWorkflow": None,
        "survey": None,
        "native": False,
        "createdAt": shop["createdAt"],
        "updatedAt": shop["createdAt"],
    }
    assert len(shop["identity"]["secret"]) >= 4 + 43
    path = f"/channels/{shop['id']}"
    assert (await service.dashboard.get(path)).json() == masked(shop)
    changed = await service.dashboard.patch(path, json={"name": "Store", "visitors": {"ask": ["email"]}})
    assert changed.json() == {
        **masked(shop),
        "name": "Store",
        "visitors": {"allowed": True, "ask": ["email"]},
        "updatedAt": changed.json()["updatedAt"],
    }
    again = await service.dashboard.patch(path, json={"name": "Store"})
    assert again.json() == changed.json()
    assert (await service.dashboard.delete(path)).json() == {"id": shop["id"], "deleted": True}
    for answer in (
        await service.dashboard.get(path),
        await service.dashboard.patch(path, json={"name": "x"}),
        await service.dashboard.post(f"{path}/rotate-secret"),
        await service.dashboard.post(f"{path}/check", json={"url": "https://127.0.0.1/"}),
        await service.dashboard.delete(path),
        await service.http.get(f"/customer/channels/{shop['id']}"),
    ):
        assert code(answer) == (404, "channel_not_found")


async def test_a_server_key_does_the_same_as_a_user(service: Service) -> None:
    shop = await made(service.http)
    path = f"/channels/{shop['id']}"
    assert (await service.http.get(path)).json() == (await service.dashboard.get(path)).json()
    assert (await service.http.patch(path, json={"enabled": False})).json()["enabled"] is False
    assert (await service.http.post(f"{path}/rotate-secret")).status_code == 200
    assert (await service.http.delete(path)).json()["deleted"] is True


async def test_settings_are_kept_in_their_usual_form(service: Service) -> None:
    shop = await made(
        service.dashboard,
        origins=[
            "https://Shop.Example:443",
            "https://*.bücher.example",
            "http://localhost",
            "http://[::1]:8080",
        ],
        look={
            "colour": "#ABCDEF",
            "position": "left",
            "texts": {"pt-br": {"title": "Olá", "greeting": "Escreva-nos."}},
        },
        visitors={"ask": ["name?", "email"]},
        identity={"mode": "required", "publicKeys": [{"id": "k1", "algorithm": "ES256", "key": pem(EC)}]},
    )
    assert shop["origins"] == [
        "https://shop.example",
        "https://*.xn--bcher-kva.example",
        "http://localhost",
        "http://[::1]:8080",
    ]
    assert shop["look"] == {
        "colour": "#abcdef",
        "position": "left",
        "texts": {"pt-BR": {"title": "Olá", "greeting": "Escreva-nos."}},
    }
    assert shop["identity"]["publicKeys"] == [{"id": "k1", "algorithm": "ES256", "key": pem(EC)}]
    assert (await service.dashboard.get(f"/channels/{shop['id']}")).json() == masked(shop)


async def test_a_change_within_an_object_keeps_its_other_fields(service: Service) -> None:
    keys = [{"id": "k1", "algorithm": "ES256", "key": pem(EC)}]
    texts = {"en": {"title": "Hi", "greeting": "Write!", "offline": "Away"}}
    shop = await made(service.dashboard, identity={"publicKeys": keys}, look={"texts": texts})
    path = f"/channels/{shop['id']}"
    body = {"identity": {"mode": "required"}, "look": {"colour": "#000000"}, "visitors": {"allowed": False}}
    changed = (await service.dashboard.patch(path, json=body)).json()
    assert (changed["identity"]["mode"], changed["identity"]["publicKeys"]) == ("required", keys)
    assert changed["look"] == {"colour": "#000000", "position": "right", "texts": texts}
    emptied = (await service.dashboard.patch(path, json={"identity": {"publicKeys": []}})).json()
    assert (emptied["identity"]["mode"], emptied["identity"]["publicKeys"]) == ("required", [])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": " "}, [("/name", "blank")]),
        ({"type": "mail"}, [("/type", "not_allowed")]),
        ({"hours": "sch_1"}, [("/hours", "invalid")]),
        ({"origins": ["http://shop.example"]}, [("/origins/0", "invalid")]),
        (
            {"origins": ["https://shop.example/", "null", "*"]},
            [(f"/origins/{at}", "invalid") for at in range(3)],
        ),
        ({"origins": ["https://a.example", "https://A.example:443"]}, [("/origins", "duplicate")]),
        ({"origins": [f"https://s{number}.example" for number in range(51)]}, [("/origins", "too_many")]),
        ({"visitors": {"ask": ["name", "name?"]}}, [("/visitors/ask", "duplicate")]),
        ({"visitors": {"ask": ["birthday"]}}, [("/visitors/ask/0", "invalid")]),
        ({"look": {"colour": "red"}}, [("/look/colour", "invalid")]),
        ({"look": {"position": "top"}}, [("/look/position", "not_allowed")]),
        ({"look": {"texts": {"not a tag": {"title": "x", "greeting": "y"}}}}, [("/look/texts", "invalid")]),
        (
            {
                "look": {
                    "texts": {
                        "en-gb": {"title": "x", "greeting": "y"},
                        "en-GB": {"title": "x", "greeting": "y"},
                    }
                }
            },
            [("/look/texts", "duplicate")],
        ),
        ({"look": {"texts": {"en": {"title": "x"}}}}, [("/look/texts/en/greeting", "required")]),
        (
            {"startsWorkflow": "wfl_1", "survey": "srv_1"},
            [("/startsWorkflow", "unknown"), ("/survey", "unknown")],
        ),
        ({"identity": {"mode": None}}, [("/identity/mode", "not_nullable")]),
        ({"origins": None, "native": None}, [("/native", "not_nullable"), ("/origins", "not_nullable")]),
        ({"identity": {"secret": "chs_mine"}}, [("/identity/secret", "unknown_field")]),
        (
            {"identity": {"mode": "none"}, "native": True, "visitors": {"allowed": False}},
            [("/native", "contradiction"), ("/visitors/allowed", "contradiction")],
        ),
    ],
)
async def test_every_wrong_setting_is_named(
    service: Service, fields: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    shop = await made(service.dashboard)
    path = f"/channels/{shop['id']}"
    assert problems(await service.dashboard.post("/channels", json={"name": "x", **fields})) == expected
    changed = {name: value for name, value in fields.items() if name != "type"}
    if changed:
        assert problems(await service.dashboard.patch(path, json=changed)) == expected
    assert (await service.dashboard.get(path)).json() == masked(shop)


async def test_problems_of_all_kinds_are_named_in_one_answer(service: Service) -> None:
    body = {"origins": ["ftp://x"], "survey": "srv_none", "look": {"colour": 7}, "shop": 1}
    assert problems(await service.dashboard.post("/channels", json=body)) == [
        ("/look/colour", "invalid"),
        ("/name", "required"),
        ("/origins/0", "invalid"),
        ("/shop", "unknown_field"),
        ("/survey", "unknown"),
    ]


P384 = ec.generate_private_key(ec.SECP384R1())
PRIVATE = EC.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.mark.parametrize(
    ("algorithm", "key", "reason"),
    [
        ("ES256", pem(P384), "P-256"),
        ("EdDSA", pem(EC), "Ed25519"),
        ("RS256", pem(EC), "RSA"),
        ("RS256", pem(rsa.generate_private_key(65_537, 1_024)), "2,048"),
        ("ES256", PRIVATE, "private key"),
        ("ES256", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "certificate"),
        ("ES256", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "no public key"),
        ("ES256", "ssh-ed25519 AAAA", "no public key"),
        ("HS256", pem(EC), None),
    ],
)
async def test_keys_that_can_not_verify_are_refused(
    service: Service, algorithm: str, key: str, reason: str | None
) -> None:
    keys = [{"id": "k1", "algorithm": algorithm, "key": key}]
    answer = await service.dashboard.post("/channels", json={"name": "x", "identity": {"publicKeys": keys}})
    field = "algorithm" if reason is None else "key"
    (problem,) = answer.json()["errors"]
    assert problem["pointer"] == f"/identity/publicKeys/0/{field}"
    assert reason is None or reason in problem["message"]
    assert "PRIVATE" not in answer.text


async def test_two_keys_overlap_while_one_is_exchanged(service: Service) -> None:
    new = ed25519.Ed25519PrivateKey.generate()
    keys = [
        {"id": "old", "algorithm": "ES256", "key": pem(EC)},
        {"id": "new", "algorithm": "EdDSA", "key": pem(new)},
    ]
    shop = await made(service.dashboard, identity={"publicKeys": keys})
    assert shop["identity"]["publicKeys"] == keys
    twice = [keys[0], {**keys[1], "id": "old"}]
    body = {"identity": {"publicKeys": twice}}
    refused = await service.dashboard.patch(f"/channels/{shop['id']}", json=body)
    assert problems(refused) == [("/identity/publicKeys", "duplicate")]


async def test_secret_is_shown_by_creation_and_rotation_alone(service: Service) -> None:
    once = {"Idempotency-Key": "k1"}
    first = await service.dashboard.post("/channels", json={"name": "x"}, headers=once)
    again = await service.dashboard.post("/channels", json={"name": "x"}, headers=once)
    plant(first.json()["identity"]["secret"])
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == masked(first.json())
    path = f"/channels/{first.json()['id']}"
    rotated = await service.dashboard.post(f"{path}/rotate-secret", headers={"Idempotency-Key": "k2"})
    plant(rotated.json()["identity"]["secret"])
    repeated = await service.dashboard.post(f"{path}/rotate-secret", headers={"Idempotency-Key": "k2"})
    identity = rotated.json()["identity"]
    assert identity["secret"].startswith("chs_")
    assert identity["secret"] != first.json()["identity"]["secret"]
    assert identity["previousSecretExpiresAt"] > rotated.json()["updatedAt"]
    assert repeated.json() == masked(rotated.json())
    assert (await service.dashboard.get(path)).json() == masked(rotated.json())
    listed = (await service.dashboard.get("/channels")).json()["items"]
    assert all("…" in each["identity"]["secret"] for each in listed)


async def test_a_change_names_the_state_that_it_was_made_for(service: Service) -> None:
    shop = await made(service.dashboard)
    path = f"/channels/{shop['id']}"
    tag = (await service.dashboard.get(path)).headers["ETag"]
    first = await service.dashboard.patch(path, json={"name": "A"}, headers={"If-Match": tag})
    assert first.status_code == 200
    assert first.headers["ETag"] != tag
    for answer in (
        await service.dashboard.patch(path, json={"name": "B"}, headers={"If-Match": tag}),
        await service.dashboard.delete(path, headers={"If-Match": tag}),
    ):
        assert code(answer) == (412, "changed_meanwhile")
    assert (await service.dashboard.get(path)).json()["name"] == "A"
    last = await service.dashboard.delete(path, headers={"If-Match": first.headers["ETag"]})
    assert last.status_code == 200


async def test_concurrent_changes_of_different_fields_are_all_kept(service: Service) -> None:
    shop = await made(service.dashboard)
    path, changes = (
        f"/channels/{shop['id']}",
        ({"name": "A"}, {"native": True}, {"origins": ["https://a.example"]}),
    )

    async def change(body: dict[str, Any]) -> None:
        assert (await service.dashboard.patch(path, json=body)).status_code == 200

    async with trio.open_nursery() as nursery:
        for body in changes:
            nursery.start_soon(change, body)
    found = (await service.dashboard.get(path)).json()
    assert (found["name"], found["native"], found["origins"]) == ("A", True, ["https://a.example"])


async def test_a_project_has_a_limit_of_channels_that_a_deletion_frees(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "CHANNELS_MAX", 3)  # the demo has one
    answers: list[httpx.Response] = []

    async def create() -> None:
        answers.append(await service.dashboard.post("/channels", json={"name": "x"}))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(create)
    assert sorted(each.status_code for each in answers) == [200, 200, 409, 409]
    assert {each.json()["code"] for each in answers if each.status_code == 409} == {"channel_limit_reached"}
    assert engine.CHANNELS_MAX == 50
    one = next(each.json()["id"] for each in answers if each.status_code == 200)
    await service.dashboard.delete(f"/channels/{one}")
    assert (await service.dashboard.post("/channels", json={"name": "x"})).status_code == 200


async def test_channels_are_listed_newest_first_by_pages(service: Service) -> None:
    (demo,) = (await service.dashboard.get("/channels")).json()["items"]
    all_of_them = [demo, *[masked(await made(service.dashboard, name=f"c{number}")) for number in range(4)]]
    listed, cursor = [], ""
    while cursor is not None:
        page = (await service.dashboard.get("/channels", params={"limit": "2", "cursor": cursor})).json()
        listed += page["items"]
        cursor = page["nextCursor"]
    assert listed == all_of_them[::-1]


async def test_a_channel_of_another_project_is_not_found(service: Service) -> None:
    shop = await made(service.dashboard)
    path = f"/organisations/{await organisation_of(service)}/projects"
    other = {"project": (await service.dashboard.post(path, json={"name": "Other"})).json()["id"]}
    one = f"/channels/{shop['id']}"
    for answer in (
        await service.dashboard.get(one, headers=other),
        await service.dashboard.patch(one, json={"name": "x"}, headers=other),
        await service.dashboard.post(f"{one}/rotate-secret", headers=other),
        await service.dashboard.post(f"{one}/check", json={"url": "http://127.0.0.1:9/"}, headers=other),
        await service.dashboard.delete(one, headers=other),
        await service.dashboard.get(f"/channels/{UNKNOWN}"),
        await service.dashboard.get("/channels/x"),
    ):
        assert code(answer) == (404, "channel_not_found")
    assert (await service.dashboard.get("/channels", headers=other)).json()["items"] == []


async def test_agents_can_not_see_channels_and_admins_manage_them(service: Service) -> None:
    async with person(service, "agent") as agent, person(service, "admin") as admin:
        for one in (agent, admin):
            one.http.headers["project"] = service.demo["projectId"]
        assert code(await agent.http.get("/channels")) == (403, "permission_denied")
        assert code(await agent.http.post("/channels", json={"name": "x"})) == (403, "permission_denied")
        await made(admin.http)


async def test_a_machine_needs_the_rights_that_a_channels_secret_gives(service: Service) -> None:
    few = await make(service, ("projects.manage",))
    all_of_them = await make(
        service, ("projects.manage", "contacts.read", "conversations.read", "conversations.reply")
    )
    path = f"/channels/{service.demo['channelId']}"
    async with showing(service, few["secret"]) as http:
        assert (await http.get(path)).status_code == 200
        for answer in (
            await http.post("/channels", json={"name": "x"}),
            await http.patch(path, json={"name": "x"}),
            await http.post(f"{path}/rotate-secret"),
        ):
            assert code(answer) == (403, "permission_denied")
    async with showing(service, all_of_them["secret"]) as http:
        assert (await http.patch(path, json={"name": "x"})).status_code == 200


async def test_changes_are_in_the_audit_trail_without_secrets_and_keys(service: Service) -> None:
    shop = await made(service.dashboard, origins=["https://shop.example"])
    path = f"/channels/{shop['id']}"
    keys = [{"id": "k1", "algorithm": "ES256", "key": pem(EC)}]
    await service.dashboard.patch(path, json={"identity": {"publicKeys": keys}, "enabled": False})
    await service.dashboard.patch(path, json={"enabled": False})
    rotated = await service.dashboard.post(f"{path}/rotate-secret")
    plant(rotated.json()["identity"]["secret"])
    await service.dashboard.delete(path)
    found = [each for each in await trail(service) if each["object"]["id"] == shop["id"]]
    assert [each["action"] for each in found] == [
        "channel.deleted",
        "channel.secret_rotated",
        "channel.changed",
        "channel.created",
    ]
    changed = found[2]["changes"]
    assert changed["enabled"] == {"before": True, "after": False}
    assert set(changed) == {"enabled", "publicKeys"}
    assert "BEGIN PUBLIC KEY" not in str(found)
    assert {each["object"]["name"] for each in found} == {"Shop"}


async def test_a_deleted_workflow_or_survey_leaves_the_channels_settings(service: Service) -> None:
    flows = [{"id": "main", "actions": [{"id": 1, "type": "message", "text": "Hi"}]}]
    workflow = await service.dashboard.post(
        "/workflows", json={"name": "Greet", "trigger": {"type": "manual"}, "flows": flows}
    )
    assert workflow.status_code == 200, workflow.text
    ids = {"startsWorkflow": workflow.json()["id"], "survey": (await survey(service))["id"]}
    shop = await made(service.dashboard, **ids)
    other = await made(service.dashboard)
    assert (shop["startsWorkflow"], shop["survey"]) == (ids["startsWorkflow"], ids["survey"])
    for what in (f"/workflows/{ids['startsWorkflow']}", f"/engagement/surveys/{ids['survey']}"):
        assert (await service.dashboard.delete(what)).status_code == 200
    found = (await service.dashboard.get(f"/channels/{shop['id']}")).json()
    assert (found["startsWorkflow"], found["survey"]) == (None, None)
    assert found["updatedAt"] > shop["updatedAt"]
    assert (await service.dashboard.get(f"/channels/{other['id']}")).json() == masked(other)
    changed = [each for each in await trail(service) if each["action"] == "channel.changed"]
    assert [each["object"]["id"] for each in changed] == [shop["id"]] * 2


async def test_a_project_with_channels_alone_can_be_deleted(service: Service) -> None:
    path = f"/organisations/{await organisation_of(service)}/projects"
    other = (await service.dashboard.post(path, json={"name": "Other"})).json()["id"]
    answer = await service.dashboard.post("/channels", json={"name": "x"}, headers={"project": other})
    plant(answer.json()["identity"]["secret"])
    public = f"/customer/channels/{answer.json()['id']}"
    assert (await service.http.get(public)).status_code == 200
    assert (await service.dashboard.delete(f"/projects/{other}")).status_code == 200
    assert code(await service.http.get(public)) == (404, "channel_not_found")
