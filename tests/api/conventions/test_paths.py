"""An id of a caller's choosing in a path is that id and nothing else, whatever it holds and however it came (ADR 7)."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from tests.support.api.request_paths import WAYS, Way, ask
from tests.support.api.service import Service, running

pytestmark = [pytest.mark.parametrize("way", WAYS), pytest.mark.long]  # each route, each way to it

ODD: Final = (
    "victim/conversations",
    "victim/export",
    "/",
    "//",
    "a//b",
    "a/",
    "/a",
    "../victim",
    "%",
    "%2F",
    "a%2Fb",
    "?",
    "#",
    "a\x7f\r\n",
    "ü 1",
    "\U0001f600",
    "+",
    "a b",
    "a+b",
    ";a=1",
    "conversations",
    "export",
    "auth0|7",
    "a\\b",
    "a&b=c",
)
DOTS: Final = (".", "..", "...")


def encoded(text: str) -> str:
    """The text as it stands in a path, with nothing left that a reader of paths could take for its own."""
    return quote(text, safe="").replace(".", "%2E")


async def test_a_users_id_leads_to_that_contact_alone(service: Service, way: Way) -> None:
    victim = await service.create(user="victim")
    for user in (*ODD, *DOTS):
        path = f"/s2s/contacts/{encoded(user)}"
        for method, target in (("GET", path), ("GET", f"{path}/conversations"), ("GET", f"{path}/export")):
            answer = await ask(service, way, method, target)
            assert (answer.status, answer.code) == (404, "contact_not_found"), (user, target)
        assert (await ask(service, way, "DELETE", path)).code == "contact_not_found", user
        put = await ask(service, way, "PUT", path, {"name": "Ada"})
        assert (put.status, put.json["userId"]) == (200, user)
        conversation = await service.create(user=user)
        assert conversation["contact"]["id"] == put.json["id"]
        listed = (await ask(service, way, "GET", f"{path}/conversations")).json["items"]
        assert [each["id"] for each in listed] == [conversation["id"]], user
        assert (await ask(service, way, "GET", f"{path}/export")).json["contact"]["userId"] == user
        assert (await ask(service, way, "DELETE", path)).json == {"id": put.json["id"], "deleted": True}
        assert (await ask(service, way, "GET", path)).code == "contact_not_found", user
    assert (await service.fetch(victim))["contact"]["userId"] == "victim"


@pytest.mark.parametrize("user", ["\x7f\r\n", " ", "\u200b"])
async def test_blank_id_is_refused_and_never_assigned(service: Service, way: Way, user: str) -> None:
    path = f"/s2s/contacts/{encoded(user)}"
    assert (await ask(service, way, "GET", path)).code == "contact_not_found"
    put = await ask(service, way, "PUT", path, {"name": "Ada"})
    assert (put.status, put.json["errors"][0]["code"]) == (422, "blank")
    assert (await ask(service, way, "GET", path)).code == "contact_not_found"


@pytest.mark.parametrize("user", DOTS)
async def test_dots_that_are_not_encoded_are_an_id_as_well(service: Service, way: Way, user: str) -> None:
    assert (await ask(service, way, "PUT", f"/s2s/contacts/{user}", {"name": "Ada"})).json["userId"] == user
    assert (await ask(service, way, "GET", f"/s2s/contacts/{user}")).json["userId"] == user
    assert (await ask(service, way, "GET", f"/s2s/contacts/{user}/conversations")).json["items"] == []
    assert (await ask(service, way, "DELETE", f"/s2s/contacts/{user}")).status == 200


@pytest.mark.parametrize(
    "target",
    [
        "/s2s/contacts/u1/",
        "/s2s/contacts/u1//conversations",
        "/s2s/contacts//conversations",
        "/s2s/contacts/u1/conversations/",
        "/s2s/contacts/a/b",
        "/s2s/contacts/",
        "//s2s/contacts/u1",
        "/s2s/../s2s/contacts/u1",
        "/s2s/contacts/u1/../u1",
        "/s2s%2Fcontacts/u1",
        "/s2s/contacts%2Fu1",
    ],
)
async def test_a_path_with_a_part_too_many_leads_nowhere(service: Service, way: Way, target: str) -> None:
    await service.create(user="u1")
    answer = await ask(service, way, "GET", target)
    assert (answer.status, answer.code) == (404, "not_found")
    assert "%2F" in answer.json["detail"]


@pytest.mark.parametrize("part", ["%ff", "%ED%A0%80", "%C3", "%", "%4", "%zz", "a%2", "%%41"])
async def test_path_that_cannot_be_decoded_is_explained(service: Service, way: Way, part: str) -> None:
    for method in ("GET", "PUT", "DELETE"):
        answer = await ask(service, way, method, f"/s2s/contacts/{part}", {} if method == "PUT" else None)
        assert (answer.status, answer.code) == (400, "bad_path")
        assert "UTF-8" in answer.json["detail"] or "hexadecimal" in answer.json["detail"]
        assert answer.json["requestId"] == answer.headers["x-request-id"]


async def test_unreserved_characters_may_be_encoded(service: Service, way: Way) -> None:
    await service.create(user="u1")
    answer = await ask(service, way, "GET", "/%732s/contact%73/%75%31/conversation%73?limit=%31")
    assert len(answer.json["items"]) == 1


async def test_a_memory_entrys_name_leads_to_that_entry_alone(service: Service, way: Way) -> None:
    contact = (await service.create())["contact"]["id"]
    path = f"/sessions/{contact}/memory"
    user = {"Authorization": f"Bearer {service.demo['token']}", "project": service.demo["projectId"]}
    names = [each for each in (*ODD, *DOTS) if each.isprintable() and "/" not in each]
    for name in ("plan/x", "/", "plan/"):  # none has such a name
        assert (await ask(service, way, "DELETE", f"{path}/{encoded(name)}", **user)).code == (
            "memory_entry_not_found"
        )
    for name in names:
        made = await ask(service, way, "POST", path, {"name": name, "content": name}, **user)
        assert made.status == 200, (name, made.json)
    for name in names:
        one = f"{path}/{encoded(name)}"
        assert (await ask(service, way, "GET", one, **user)).json["content"] == name
        changed = await ask(service, way, "PATCH", one, {"content": f"new {name}"}, **user)
        assert (changed.json["name"], changed.json["content"]) == (name, f"new {name}")
    for name in names:
        assert (await ask(service, way, "DELETE", f"{path}/{encoded(name)}", **user)).json["deleted"], name
    assert (await service.dashboard.get(path)).json()["items"] == []


@pytest.mark.parametrize("end", ["", "."])
async def test_an_entry_without_a_name_does_not_stand_for_all_of_the_memory(
    service: Service, way: Way, end: str
) -> None:
    """Keep clients that take `/memory/.` for `/memory/`, or have an empty name, from clearing all memory."""
    path = f"/sessions/{(await service.create())['contact']['id']}/memory"
    assert (await service.dashboard.post(path, json={"name": "plan", "content": "gold"})).is_success
    user = {"Authorization": f"Bearer {service.demo['token']}", "project": service.demo["projectId"]}
    assert (await ask(service, way, "DELETE", f"{path}/{end}", **user)).status == 404
    assert len((await service.dashboard.get(path)).json()["items"]) == 1


async def test_a_translations_key_leads_to_that_entry_alone(service: Service, way: Way) -> None:
    user = {"Authorization": f"Bearer {service.demo['token']}", "project": service.demo["projectId"]}
    keys = [each for each in (*ODD, *DOTS) if each.isprintable()]
    for key in keys:
        body = {"language": "en", "fields": {"value": key}}
        path = f"/translations/entries/{encoded(f'statictranslation:{key}')}"
        made = await ask(service, way, "PUT", path, body, **user)
        assert (made.status, made.json["id"]) == (200, key)
    for key in keys:
        for path in (encoded(f"statictranslation:{key}"), f"statictranslation:{quote(key)}"):
            found = await ask(service, way, "GET", f"/translations/entries/{path}", **user)
            assert found.json["fields"] == {"value": key}, path
    for key in keys:
        path = f"/translations/entries/{encoded(f'statictranslation:{key}')}"
        assert (await ask(service, way, "DELETE", path, **user)).status == 200, key


async def test_lines_and_metrics_name_the_route_and_never_an_id(
    tmp_path: Path, way: Way, capfd: pytest.CaptureFixture[str]
) -> None:
    async with running(tmp_path) as service:
        for user in ("mk7some/body", "."):
            await ask(service, way, "PUT", f"/s2s/contacts/{encoded(user)}", {"name": "Ada"})
        said = (await service.http.get(f"{service.url}/metrics")).text
    assert 'route="/v3/s2s/contacts/{userId}"' in said
    told = "".join(capfd.readouterr())
    assert "/v3/s2s/contacts/{userId}" in told or "/v3/s2s/contacts/<user_id>" in told
    for text in (said, told):
        assert "mk7some" not in text


@pytest.mark.parametrize(
    ("target", "status", "code"),
    [
        ("?x", 404, "not_found"),
        ("http://[", 400, "bad_path"),
        ("*", 404, "not_found"),
        ("x/y", 404, "not_found"),
        ("http://x/v3/s2s/contacts/a%2Fb", 404, "contact_not_found"),
        ("http://x/v3/s2s/contacts/%ff", 400, "bad_path"),
    ],
)
async def test_a_target_of_another_form_is_answered_in_clear_words(
    service: Service, way: Way, target: str, status: int, code: str
) -> None:
    answer = await ask(service, way, "GET", target, whole=True)
    assert (answer.status, answer.code) == (status, code)
