"""Every text is refused if it is blank or has U+0000."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from deskwire.engine.core.errors import BadRequest, Invalid, Problem
from deskwire.http.api.input.validation import Body, parse_body, parse_query
from deskwire.http.app import ROUTES
from tests.support.api.service import Service

BLANKS = [" ", "\t\n", "\u00a0\u2003", "\u200b", "\u2060\ufeff", "\u2028"]

VALUES: list[Any] = [
    {}, {"zz": 1}, [], [1], ["x"] * 2_000, 1, -1, 1.5, 1e300, 10**12, "", " ", "x" * 50_000, None, True, "§/\u0001",
    "2026-13-01", ["x", "x"], [{}], [[]], [None], {"type": "zz"}, {"k" * 300: 1}, {f"k{i}": 1 for i in range(300)},
    "a\0b", ["a\0b"],
]  # fmt: skip
PARAMETERS = ["", " ", "x" * 5_000, "1", "-1", "true", "zz", "1.5", "9999999999", "2026-13-01", "a,a", "\0"]
INNER = (
    "pattern",
    "should be",
    "should have",
    "Input",
    "after validation",
    "instance of",
    "Dictionary",
    "String",
    "^",
    "[key]",
)


def problems(answer: httpx.Response) -> list[tuple[str, str]]:
    assert answer.status_code in (400, 422), answer.text
    return [(each["pointer"], each["code"]) for each in answer.json()["errors"]]


@pytest.mark.parametrize("blank", BLANKS, ids=ascii)
async def test_a_text_of_blanks_is_refused(service: Service, blank: str) -> None:
    conversation = await service.create()
    messages = f"/s2s/conversations/{conversation['id']}/messages"
    assert problems(await service.http.post(messages, json={"text": blank})) == [("/text", "blank")]
    note = {"text": blank, "internal": True}
    said = await service.dashboard.post(messages.removeprefix("/s2s"), json=note)
    assert problems(said) == [("/text", "blank")]
    new = {"contact": {"userId": blank, "name": blank}, "title": blank, "message": {"text": blank}}
    assert problems(await service.http.post("/s2s/conversations", json=new)) == [
        ("/contact/name", "blank"),
        ("/contact/userId", "blank"),
        ("/title", "blank"),
        ("/message/text", "blank"),
    ]
    ticket = {"title": blank, "type": blank, "tags": ["a", blank]}
    assert problems(await service.dashboard.post("/tickets", json=ticket)) == [
        ("/title", "blank"),
        ("/type", "blank"),
        ("/tags/1", "blank"),
    ]
    assert await service.types() == ["conversation.created"]


@pytest.mark.parametrize("text", ["👩‍👩‍👧", "\u200b.", " a ", "\u0301", "\U0001fae8", "."], ids=ascii)
async def test_a_text_that_shows_something_is_taken_as_it_is(service: Service, text: str) -> None:
    conversation = await service.create()
    assert (await service.say(conversation, text))["text"] == text


async def test_u_0000_is_refused_in_every_text_and_name_with_its_place(service: Service) -> None:
    conversation = await service.create()
    one = f"/s2s/conversations/{conversation['id']}"
    assert problems(await service.http.post(f"{one}/messages", json={"text": "a\0b"})) == [
        ("/text", "nul_character")
    ]
    patch = {"title": "a\0b", "attributes": {"plan\0": "x", "deep": [{"a": ["b", "\0"]}]}, "zz": 1}
    assert sorted(problems(await service.http.patch(one, json=patch))) == [
        ("/attributes/deep/0/a/1", "nul_character"),
        ("/attributes/plan\0", "nul_character"),
        ("/title", "nul_character"),
        ("/zz", "unknown_field"),
    ]
    new = {"contact": {"userId": "u\0"}}
    assert problems(await service.http.post("/s2s/conversations", json=new)) == [
        ("/contact/userId", "nul_character")
    ]
    assert (await service.fetch(conversation)) == conversation


async def test_a_text_with_a_backslash_in_front_of_u0000_has_none(service: Service) -> None:
    conversation = await service.create()
    assert (await service.say(conversation, "\\u0000"))["text"] == "\\u0000"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_u_0000_in_a_path_is_refused_and_makes_no_contact(service: Service, method: str) -> None:
    body = {"name": "Ada"} if method == "PUT" else None
    answer = await service.http.request(method, "/s2s/contacts/a%00b", json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "nul_character")


async def test_u_0000_in_a_query_is_refused_by_name(service: Service) -> None:
    for path, name in (
        ("/tickets", "q"),
        ("/search", "q"),
        ("/conversations", "contact"),
        ("/contacts", "q"),
    ):
        answer = await service.dashboard.get(path, params={name: "a\0b"})
        assert (f"/{name}", "nul_character") in problems(answer), path


async def test_u_0000_is_refused_in_imports_definitions_and_authorizations(service: Service) -> None:
    line = {
        "type": "conversation",
        "externalId": "x\0",
        "contact": {"userId": "u"},
        "createdAt": "2026-11-01T12:00:00Z",
    }
    said = await service.http.post(
        "/s2s/import", content=json.dumps(line), headers={"Content-Type": "application/x-ndjson"}
    )
    assert [(each["pointer"], each["code"]) for each in said.json()["refusals"][0]["errors"]] == [
        ("/externalId", "nul_character")
    ]
    flows = [{"id": "main", "actions": [{"id": 1, "type": "message", "text": "a\0b"}]}]
    workflow = {"name": "W", "trigger": {"type": "manual"}, "flows": flows}
    checked = (await service.dashboard.post("/workflows/validate", json=workflow)).json()
    assert [(each["path"], each["code"]) for each in checked["errors"]] == [
        ("/flows/0/actions/0/text", "nul_character")
    ]
    form = {"socket_id": "1.1", "channel_name": "private-contact-u\0", "consumerId": "c\0"}
    assert problems(await service.http.post("/s2s/stream/auth", json=form)) == [
        ("/channel_name", "nul_character"),
        ("/consumerId", "nul_character"),
    ]


async def test_recorded_request_may_have_u_0000_only_in_its_payload(
    service: Service,
) -> None:
    conversation = await service.create()
    logs = f"/s2s/conversations/{conversation['id']}/network-logs"
    kept = await service.http.put(logs, json={"requests": [{"url": "u", "request": "a\0b"}]})
    assert kept.status_code == 204
    refused = await service.http.put(logs, json={"requests": [{"url": "a\0b"}]})
    assert problems(refused) == [("/requests/0/url", "nul_character")]


def every_problem() -> list[tuple[str, Problem]]:
    """Return the problems of odd values for each field of each body and each query parameter."""
    found: list[tuple[str, Problem]] = []

    def note(name: str, refused: Invalid | BadRequest) -> None:
        found.extend((name, each) for each in refused.problems)

    def examine(model: type[Body]) -> None:
        for name, field in model.model_fields.items():
            for value in VALUES:
                try:
                    parse_body(model, json.dumps({field.alias or name: value}).encode())
                except (Invalid, BadRequest) as refused:
                    note(model.__name__, refused)

    for route in ROUTES:
        for body in (*([] if route.body is None else [route.body]), *route.lines):
            examine(body)
        for name, field in route.query.model_fields.items():
            for text in PARAMETERS:
                try:
                    parse_query(route.query, {field.alias or name: [text]})
                except BadRequest as refused:
                    note(route.query.__name__, refused)
    return found


def test_no_refusal_of_a_value_has_a_pattern_or_a_name_from_within() -> None:
    said = every_problem()
    assert len({each.code for _, each in said}) > 12
    for name, problem in said:
        for inner in INNER:
            assert inner not in problem.message, (name, problem)
        assert "[key]" not in problem.pointer, (name, problem)
        assert problem.message[0].isupper(), (name, problem)


async def test_answers_end_with_a_line_end_so_that_a_prompt_stands_on_its_own_line(service: Service) -> None:
    conversation = await service.create()
    for answer in (
        await service.http.get(f"/s2s/conversations/{conversation['id']}"),
        await service.http.get("/s2s/events"),
        await service.http.get("/s2s/conversations/nothing"),
        await service.http.post("/s2s/conversations", content=b"{"),
        await service.http.get(f"{service.url}/healthz"),
        await service.http.get(f"{service.url}/nowhere"),
    ):
        assert answer.content.endswith(b"}\n"), answer.request.url
        assert answer.content.count(b"\n") == 1


async def test_the_secret_of_an_endpoint_is_not_shown_again_under_the_same_key(service: Service) -> None:
    key = {"Idempotency-Key": "endpoint-1"}
    new = {"url": "https://127.0.0.1:9443/"}
    first = (await service.http.post("/s2s/webhooks", json=new, headers=key)).json()
    again = await service.http.post("/s2s/webhooks", json=new, headers=key)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == {**first, "secret": f"whsec_…{first['secret'][-4:]}"}
    assert first["secret"] not in again.text
    rotate = f"/s2s/webhooks/{first['id']}/rotate-secret"
    rotated = (await service.http.post(rotate, headers=key)).json()
    assert rotated["secret"] != first["secret"]
    replayed = (await service.http.post(rotate, headers=key)).json()
    assert replayed["secret"] == f"whsec_…{rotated['secret'][-4:]}"
    listed = (await service.http.get("/s2s/webhooks")).json()["items"]
    assert listed[0]["secret"] == replayed["secret"]
