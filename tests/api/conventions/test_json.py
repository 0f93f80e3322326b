"""JSON in bodies: no digit is lost unseen, and what is not taken is refused in clear words (ADR 5)."""

from __future__ import annotations

import json
from typing import Any, Final

import httpx
import pytest

from tests.engine.workflows.building import FORM, workflow
from tests.protocol.test_fast_path import BY_QUART
from tests.support.api.import_lines import conversation as imported
from tests.support.api.service import Service
from tests.support.api.surveys import survey

BEYOND: Final = ("18446744073709551616", "-9223372036854775809", "123456789012345678901234567890")
WITHIN: Final = ("18446744073709551615", "-9223372036854775808", "9007199254740993", "-0", "0")
JSON: Final = {"Content-Type": "application/json"}


@pytest.fixture(params=["lane", "hypercorn"])
def send(request: pytest.FixtureRequest, service: Service) -> Any:
    """Sends bytes as a body of JSON, on either way."""
    headers = JSON | (dict([BY_QUART]) if request.param == "hypercorn" else {})

    async def sending(
        method: str, path: str, content: str | bytes, client: httpx.AsyncClient = service.http
    ) -> httpx.Response:
        return await client.request(method, path, content=content, headers=headers)

    return sending


def pointers(answer: httpx.Response) -> list[tuple[str, str]]:
    """Return the refused pointers with their codes."""
    assert answer.status_code == 422, answer.text
    return [(each["pointer"], each["code"]) for each in answer.json()["errors"]]


@pytest.mark.parametrize("number", BEYOND)
async def test_an_integer_of_more_than_64_bits_is_refused_where_it_would_be_kept(
    service: Service, send: Any, number: str
) -> None:
    conversation = await service.create(attributes={"before": 1})
    path = f"/s2s/conversations/{conversation['id']}"
    body = f'{{"contact": {{"userId": "u1"}}, "attributes": {{"a": 1, "b/c": [{{"d": {number}}}]}}}}'
    for answer in (
        await send("POST", "/s2s/conversations", body),
        await send("PATCH", path, f'{{"attributes": {{"b/c": [{{"d": {number}}}]}}}}'),
    ):
        assert pointers(answer) == [("/attributes/b~1c/0/d", "too_large")]
        assert "18446744073709551615" in answer.json()["errors"][0]["message"]
    assert pointers(await send("POST", f"{path}/rating", f'{{"rating": {number}}}')) == [
        ("/rating", "too_large")
    ]
    made = await survey(service)
    answers = f'{{"answers": {{"score": {number}}}}}'
    assert pointers(await send("POST", f"/s2s/surveys/{made['id']}/responses", answers)) == [
        ("/answers/score", "too_large")
    ]
    assert (await service.fetch(conversation))["attributes"] == {"before": 1}
    assert await service.types() == ["conversation.created"]


@pytest.mark.parametrize("number", BEYOND)
async def test_a_workflow_has_no_integer_that_would_change(service: Service, send: Any, number: str) -> None:
    flow = workflow([{"id": 1, "type": "set_attributes", "attributes": {"a": 0, "b": "$"}}, FORM])
    text = json.dumps(flow).replace('"$"', number)
    at = [("/flows/0/actions/0/attributes/b", "too_large")]
    assert pointers(await send("POST", "/workflows", text, service.dashboard)) == at
    told = (await send("POST", "/workflows/validate", text, service.dashboard)).json()
    assert [(each["path"], each["code"]) for each in told["errors"]] == at
    made = (await service.dashboard.post("/workflows", json=workflow([FORM]))).json()
    path = f"/s2s/conversations/{(await service.create())['id']}/workflow"
    assert (await service.http.post(f"{path}/start", json={"workflowId": made["id"]})).is_success
    reply = f'{{"actionId": {FORM["id"]}, "value": {{"number": {number}}}}}'
    assert pointers(await send("POST", f"{path}/reply", reply)) == [("/value/number", "too_large")]


@pytest.mark.parametrize("number", BEYOND)
async def test_a_line_of_an_import_has_none_either(service: Service, number: str) -> None:
    line = json.dumps(imported("a") | {"attributes": {"n": "$"}}).replace('"$"', number)
    answer = await service.http.post(
        "/s2s/import", content=line.encode(), headers={"Content-Type": "application/x-ndjson"}
    )
    (refused,) = answer.json()["refusals"]
    assert [(each["pointer"], each["code"]) for each in refused["errors"]] == [("/attributes/n", "too_large")]


@pytest.mark.parametrize("number", [*WITHIN, "1e308", "-1.7976931348623157e308", "0.1", "1e20"])
async def test_every_other_number_is_kept_as_it_is(service: Service, send: Any, number: str) -> None:
    body = f'{{"contact": {{"userId": "u1"}}, "attributes": {{"n": {number}, "in": [{number}]}}}}'
    answer = await send("POST", "/s2s/conversations", body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["attributes"] == {"n": json.loads(number), "in": [json.loads(number)]}
    assert (await service.fetch(answer.json()))["attributes"]["n"] == json.loads(number)
    (event,) = await service.events()
    assert event["data"]["conversation"]["attributes"]["n"] == json.loads(number)


async def test_network_logs_keep_every_digit_of_every_number(service: Service, send: Any) -> None:
    """Contract 2.3: any JSON value. Decisions 4: stored as sent."""
    numbers = [*BEYOND, *WITHIN, "1e308", "0.12345678901234567890123456789", "1.0", "1e-400", "1.00E+2"]
    value = "[" + ",".join(numbers) + "]"
    snapshot = f'{{"requests": [{{"url": "x", "request": {value}, "response": {{"n": {value}}}, "duration": 1e308}}]}}'
    conversation = await service.create()
    path = f"/conversations/{conversation['id']}/network-logs"
    assert (await send("PUT", f"/s2s{path}", snapshot)).status_code == 204
    shown = (await service.dashboard.get(path)).text
    exported = (await service.http.get("/s2s/contacts/u1/export")).text
    for text in (shown, exported):
        assert value in text
        assert f'"n": {value}' in text
    for bad in (f'"duration": {BEYOND[0]}, "success": 1', f'"url": {BEYOND[0]}'):
        refused = await send("PUT", f"/s2s{path}", f'{{"requests": [{{"url": "x", "type": "x", {bad}}}]}}')
        assert refused.status_code == 422


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"text": 1e309}', "the largest is about 1.8e308"),
        ('{"text": -1e309}', "the largest is about 1.8e308"),
        ('{"text": Infinity}', "NaN and Infinity are no numbers in JSON"),
        ('{"text": NaN}', "NaN and Infinity are no numbers in JSON"),
        ('{"text": ' + "[" * 1_024 + "]" * 1_024 + "}", "more than 1,024 levels deep"),
        ("[" * 1_025 + "]" * 1_025, "more than 1,024 levels deep"),
        ("\ufeff{}", "a byte order mark"),
        (b'{"text": "\xff"}', "not in UTF-8"),
        (r'{"text": "\ud800"}', "half a character"),
        ('{"text": "a"', "unexpected end of data (line 1, column 13)"),
    ],
)
async def test_malformed_json_body_is_explained(
    service: Service, send: Any, content: str | bytes, words: str
) -> None:
    path = f"/s2s/conversations/{(await service.create())['id']}/messages"
    answer = await send("POST", path, content.encode() if isinstance(content, str) else content)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed_json")
    assert words in answer.json()["detail"]


@pytest.mark.parametrize("content", ["", " ", "\r\n\t "])
async def test_an_empty_body_is_called_empty(service: Service, send: Any, content: str) -> None:
    path = f"/s2s/conversations/{(await service.create())['id']}"
    answer = await send("POST", f"{path}/rating", content)
    assert pointers(answer) == [("/rating", "required")]
    assert answer.json()["detail"] == "The body is empty; it must be a JSON object."
    assert (await send("POST", f"{path}/read", content)).status_code == 200  # where none is needed
    assert (await send("PATCH", path, content)).json()["errors"][0]["code"] == "required"
    drafted = await send("POST", "/workflows/validate", content, service.dashboard)
    assert (drafted.status_code, drafted.json()["ok"]) == (200, False)


@pytest.mark.parametrize("levels", [239, 300, 1_020])
async def test_refusal_of_deep_attributes_names_the_limit(service: Service, send: Any, levels: int) -> None:
    def body(depth: int) -> str:
        return f'{{"contact": {{"userId": "u1"}}, "attributes": {{"a": {"[" * (depth - 1) + "]" * (depth - 1)}}}}}'

    answer = await send("POST", "/s2s/conversations", body(levels))
    assert pointers(answer) == [("/attributes", "too_deep")]
    assert "238 levels" in answer.json()["errors"][0]["message"]
    assert (await send("POST", "/s2s/conversations", body(238))).status_code == 200
    conversation = await service.create()
    assert (await send("PATCH", f"/s2s/conversations/{conversation['id']}", body(levels))).status_code == 422


async def test_of_a_key_that_is_there_twice_the_last_one_counts(service: Service, send: Any) -> None:
    answer = await send("POST", "/s2s/conversations", '{"contact": {"userId": "u1", "userId": "u2"}}')
    assert answer.json()["contact"]["userId"] == "u2"
