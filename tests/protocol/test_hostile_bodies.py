"""The cost and size of a response grow no faster than the request, and are bounded (ADR 41)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, get_args, get_origin

import httpx
import orjson
import pytest
from annotated_types import MaxLen
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from deskwire.engine.core.errors import PROBLEMS_MAX, BadRequest, Invalid
from deskwire.engine.definitions.attributes import ATTRIBUTES_BYTES
from deskwire.http.api.input.unknown_fields import without_null
from deskwire.http.api.input.validation import parse_body, parse_query
from deskwire.http.api.routing import SMALL, Route
from deskwire.http.app import ROUTES
from deskwire.http.description.openapi.samples import BODIES
from deskwire.http.resources.imports.imports import REFUSALS_BYTES
from deskwire.http.schemas.base import public_name
from tests.support.api.import_lines import bring, conversation, message
from tests.support.api.service import Service

ANSWER_MAX: Final = 64 * 1024
"""Maximum bytes of fifty problems, each with a truncated pointer and message."""

WITH_MODEL: Final = [route for route in ROUTES if route.body is not None and route.json_only]
OPEN_WITH_BODY: Final = [route for route in WITH_MODEL if route.access.kind == "none"]


def unknown(count: int, name: str = "k{}") -> dict[str, int]:
    return {name.format(index): index for index in range(count)}


def refused(answer: httpx.Response, status: int, total: int) -> list[dict[str, str]]:
    """Return the problems of a refusal, which must have this number of them."""
    document = answer.json()
    assert (answer.status_code, document["errorsTotal"]) == (status, total), answer.text[:500]
    assert len(document["errors"]) == min(total, PROBLEMS_MAX)
    assert len(answer.content) < ANSWER_MAX
    problems: list[dict[str, str]] = document["errors"]
    return problems


async def test_large_sign_in_body_is_refused_by_its_content_length(service: Service) -> None:
    status, body = await service.declare("POST", "/auth/token", 1_000_000)  # and sends none of it
    document = orjson.loads(body)
    assert (status, document["code"]) == (413, "body_too_large")
    assert "8,192 bytes" in document["detail"]


async def test_anonymous_body_is_answered_with_at_most_fifty_problems(service: Service) -> None:
    assert [route.public_path for route in OPEN_WITH_BODY] == [
        "/v3/customer/session",
        "/v3/auth/token",
        "/v3/auth/session",
        "/v3/auth/session/factor",
        "/v3/auth/session/factor/passkey-options",
        "/v3/auth/passkey/options",
        "/v3/auth/passkey",
        "/v3/auth/links/inspect",
        "/v3/auth/links/use",
        "/v3/auth/password-links",
    ]
    async with httpx.AsyncClient() as anybody:
        for route in OPEN_WITH_BODY:
            content = orjson.dumps(unknown(750))
            assert SMALL - 2_000 < len(content) <= SMALL
            headers = {"Content-Type": "application/json"}
            answer = await anybody.post(service.url + route.path, content=content, headers=headers)
            assert route.body is not None
            required = sum(field.is_required() for field in route.body.model_fields.values())
            problems = refused(answer, 422, 750 + required)
            assert {each["code"] for each in problems} == {"unknown_field"} | (
                {"required"} if required else set()
            )
            assert answer.json()["detail"] == f"{750 + required} problems found in the request body."


async def test_unknown_names_at_any_level_are_counted_and_the_first_named(service: Service) -> None:
    requests = [{"url": f"https://x.test/{index}"} | unknown(1_000) for index in range(100)]
    path = "/s2s/conversations/cnv_1/network-logs"
    problems = refused(await service.http.put(path, json={"requests": requests}), 422, 100_000)
    assert problems[0] == {
        "in": "body",
        "pointer": "/requests/0/k0",
        "code": "unknown_field",
        "message": "There is no such field.",
    }


async def test_many_wrong_items_are_counted_and_the_first_named(service: Service) -> None:
    async def change(count: int) -> httpx.Response:
        body = {"selection": {"ids": [1] * count}, "payload": {"priority": "HIGH"}}
        return await service.dashboard.put("/tickets/bulk", json=body)

    problems = refused(await change(1_000), 422, 1_000)
    assert [each["pointer"] for each in problems] == [f"/selection/ids/{index}" for index in range(50)]
    refused(await change(100_000), 422, 1)  # too many, so they are not validated


async def test_many_keys_of_attributes_are_one_problem(service: Service) -> None:
    body = {"contact": {"userId": "u"}, "attributes": unknown(5_000, "k" * 70 + "{}")}
    (problem,) = refused(await service.http.post("/s2s/conversations", json=body), 422, 1)
    assert problem["code"] == "too_many"
    assert "at most 100 fields" in problem["message"]


async def test_long_names_and_values_are_truncated_in_problems(service: Service) -> None:
    names = {f"{index}{'n' * 5_000}": 1 for index in range(60)}
    problems = refused(await service.http.post("/s2s/conversations", json=names), 422, 61)
    assert all(len(each["pointer"]) <= 200 for each in problems)
    assert problems[-1]["pointer"].endswith("n…")
    answer = await service.http.post(
        "/s2s/conversations", content=b"{}", headers={"Content-Type": "x/" + "y" * 5_000}
    )
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert len(answer.json()["detail"]) <= 1_000


@pytest.mark.parametrize("count", [40_000, 51, 50, 1])
async def test_integers_beyond_64_bits_are_counted_at_any_path(service: Service, count: int) -> None:
    wrong = b",".join([b"99999999999999999999999"] * count)
    deep = b"[" * 900 + wrong + b"]" * 900
    body = b'{"name":"x","definition":{"%s":%s}}' % (b"n" * 10_000, deep)
    answer = await service.dashboard.post(
        "/engagement/surveys", content=body, headers={"Content-Type": "application/json"}
    )
    problems = refused(answer, 422, answer.json()["errorsTotal"])
    assert answer.json()["errorsTotal"] >= count
    assert "too_large" in {each["code"] for each in problems}


async def test_thousands_of_parameters_are_counted_and_the_first_named(service: Service) -> None:
    query = "&".join(f"p{index}" for index in range(100))
    problems = refused(await service.http.get(f"/s2s/events?{query}"), 400, 100)
    assert problems[0]["pointer"] == "/p0"
    (problem,) = refused(await service.http.get(f"/s2s/events?{query}&p{query}&p=1"), 400, 1)
    assert (problem["pointer"], problem["code"]) == ("", "too_many")  # none of them was read
    names = ",".join(f"n{index}" for index in range(1_200))
    assert len(refused(await service.http.get(f"/s2s/events?types={names}"), 400, 1_200)) == 50
    form = "&".join(f"f{index}=1" for index in range(40))
    answer = await service.http.post(
        "/s2s/stream/auth",
        content=form,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    refused(answer, 422, 43)


async def test_problems_of_refused_lines_are_bounded_and_the_rest_counted(service: Service) -> None:
    lines = [message("old-0", index, **unknown(2_000), externalId="x" * 2_000) for index in range(300)]
    report = await bring(service.http, conversation("old-0"), *lines)
    assert report["refused"] == 300
    assert report["refused"] == len(report["refusals"]) + report["refusalsLeftOut"]
    assert 0 < report["refusalsLeftOut"] < 300
    assert len(orjson.dumps(report)) < REFUSALS_BYTES + ANSWER_MAX
    first = report["refusals"][0]
    assert (len(first["errors"]), first["errorsTotal"]) == (PROBLEMS_MAX, 2_001)
    assert first["externalId"] == "x" * 255 + "…"


@given(st.sampled_from(WITH_MODEL), st.data())
def test_problems_are_the_same_for_large_and_small_bodies(route: Route, data: st.DataObject) -> None:
    """Small bodies are validated with their unknown names, large ones without."""
    model = route.body
    assert model is not None
    sample: Any = BODIES.get(public_name(model), {})
    sent = data.draw(odd(sample))
    raw = orjson.dumps(sent)
    assert sorted(problems_of(model, raw)) == sorted(problems_of(model, raw + b" " * 5_000))


def odd(sample: Any) -> st.SearchStrategy[Any]:
    """Draw the sample with additional names at some levels and other values in some places."""
    more = st.dictionaries(st.sampled_from(["x", "a/b", "", "~"]), st.just(1), max_size=2)
    if isinstance(sample, dict):
        fields = st.fixed_dictionaries({name: odd(each) for name, each in sample.items()})
        return st.builds(lambda given, added: {**added, **given}, fields, more)
    if isinstance(sample, list) and sample:
        return st.lists(odd(sample[0]), max_size=3)
    return st.just(sample) | st.sampled_from([None, 5, "", [], {"x": 1}])


def problems_of(model: Any, raw: bytes) -> list[tuple[str, str, str]]:
    try:
        parse_body(model, raw)
    except Invalid as refusal:
        return [
            (str(refusal.unnamed), "", ""),
            *((each.pointer, each.code, each.message) for each in refusal.problems),
        ]
    return []


def test_problems_of_a_query_are_independent_of_its_size() -> None:
    feed = next(route.query for route in ROUTES if route.public_path == "/v3/s2s/events")
    pairs = {"limit": ["x"], "wait": ["1", "2"], **{f"p{index}": ["1", "2"] for index in range(10_000)}}
    with pytest.raises(BadRequest) as refusal:
        parse_query(feed, pairs)
    found = [(each.pointer, each.code) for each in refusal.value.problems]
    assert found[:2] == [("?wait", "repeated"), ("?limit", "invalid")]
    assert len(found) + refusal.value.unnamed == 10_002


# Maximum bytes of bodies. An astral character takes 12 bytes when it is escaped; a character of a typed password takes three.

ESCAPED: Final = 12
TYPED: Final = 3


def longest(annotation: Any, metadata: tuple[Any, ...], escaped: int) -> int | None:
    """Return the maximum bytes of a field; None if it has no limit."""
    annotation, metadata = plain(annotation, metadata)
    most = next((each.max_length for each in metadata if isinstance(each, MaxLen)), None)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return whole(annotation)
    if annotation is str:
        return 40 * escaped if most is None else most * escaped + 2  # list items without a limit are ids
    if get_origin(annotation) is list:
        each = longest(get_args(annotation)[0], (), escaped)
        return None if most is None or each is None else most * (each + 1)
    if get_origin(annotation) is Literal or annotation in (bool, int, float):
        return 100
    return None


def plain(annotation: Any, metadata: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Return the annotation without null, with its inner annotations and metadata."""
    found = [*metadata]
    for part in (annotation, *get_args(annotation)):
        for each in getattr(part, "__metadata__", ()):
            found += getattr(each, "metadata", [each])
    return without_null(annotation), tuple(found)


def whole(model: type[BaseModel]) -> int | None:
    """Return the maximum bytes of a body, including its names."""
    total = 2
    for name, field in model.model_fields.items():
        typed = "password" in name or public_name(model) in ("SignInRequest", "IssueTokenRequest")
        size = (
            ATTRIBUTES_BYTES * 6
            if name == "attributes"
            else longest(field.annotation, tuple(field.metadata), TYPED if typed else ESCAPED)
        )
        if size is None:
            return None
        total += len(field.alias or name) + 4 + size
    return total


BOUNDED_ELSEWHERE: Final = {
    "ReplyToStepRequest": 20_000 * ESCAPED,  # its value as a message
    "ChangeCustomerRequest": 4 * 1024 * 6 + 12_000,  # the context, and three fields
    "StartMyConversationRequest": 4 * 1024 * 6 + 20_000 * ESCAPED + 40_000,  # also a message
    "CreateViewRequest": 30 * (1_000 * ESCAPED + 40) + 4_000,  # the conditions, a name and ids
    "StartBulkJobRequest": 30 * (1_000 * ESCAPED + 40) + 2 * 20 * 100 * ESCAPED + 4_000,  # also the tags
    "ChangeViewRequest": 30 * (1_000 * ESCAPED + 40) + 4_000,
    "FactorRequest": 16 * 1024,  # the answer of a passkey
    "PasskeySignInRequest": 16 * 1024,
    "AddPasskeyRequest": 16 * 1024,
    "ProofRequest": 16 * 1024,
    "ReplyToMyStepRequest": 20_000 * ESCAPED,
    "CreateMyResponseRequest": 64 * 1024 * 6,
    "CreateSurveyResponseRequest": 64 * 1024 * 6 + 40_000,  # its answers, and a contact
}


def test_no_body_that_its_fields_allow_is_refused_for_its_length() -> None:
    looked_at = 0
    for route in WITH_MODEL:
        assert route.body is not None
        if isinstance(route.limit, int):
            needed = whole(route.body) or BOUNDED_ELSEWHERE[public_name(route.body)]
            assert needed <= route.limit, (route.operation_id, needed)
            looked_at += 1
    assert looked_at > 60


def lists(model: type[BaseModel]) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    for name, field in model.model_fields.items():
        annotation, metadata = plain(field.annotation, tuple(field.metadata))
        if get_origin(annotation) in (list, dict):
            yield name, annotation, metadata
        inner = get_args(annotation)[:1] if get_origin(annotation) is list else (annotation,)
        for each in inner:
            if isinstance(each, type) and issubclass(each, BaseModel):
                yield from lists(each)


def test_every_list_in_a_body_has_a_maximum_length() -> None:
    """Validation checks the length first; otherwise it would create an error for each item."""
    models = {route.body for route in WITH_MODEL if route.body} | {
        each for route in ROUTES for each in route.lines
    }
    for model in models:
        for name, annotation, metadata in lists(model):
            bounded = any(isinstance(each, MaxLen) for each in metadata)
            assert bounded or annotation == dict[str, Any], (public_name(model), name)
