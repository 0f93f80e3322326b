"""The authorization request in the forms that published clients send."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.errors import BadRequest, Invalid
from deskwire.http.resources.stream.authorization import AuthorizationRequest, parse_authorization

FULL = AuthorizationRequest("1.2", "private-x", "c1", True, "auto")


def as_json(**fields: Any) -> bytes:
    return orjson.dumps({"socket_id": "1.2", "channel_name": "private-x", "consumerId": "c1", **fields})


def problems(body: bytes, query: dict[str, str] | None = None) -> set[tuple[str, str]]:
    with pytest.raises(Invalid) as refused:
        parse_authorization(body, query or {})
    return {(problem.pointer, problem.code) for problem in refused.value.problems}


@pytest.mark.parametrize(
    ("body", "query"),
    [
        (as_json(typingEvents=True), {}),
        (b" \n" + as_json(typingEvents=True), {}),
        (b"socket_id=1.2&channel_name=private-x&consumerId=c1&typingEvents=true", {}),  # pusher-js
        (b"channel_name=private-x&socket_id=1.2", {"consumerId": "c1", "typingEvents": "1"}),  # Pysher
        (as_json(typingEvents="true"), {"consumerId": "another"}),
        (as_json(typingEvents=True, resume=None), {"resume": "live"}),
    ],
)
def test_every_published_clients_request_is_understood(body: bytes, query: dict[str, str]) -> None:
    """Contract 4.4; decisions 5: by the body, not the header; missing fields from the query."""
    assert parse_authorization(body, query) == FULL


@pytest.mark.parametrize("text", ["", "null", "undefined", "false", "0"])
def test_typing_is_off_for_any_empty_value(text: str) -> None:
    body = f"socket_id=1.2&channel_name=private-x&consumerId=c1&typingEvents={text}".encode()
    assert parse_authorization(body, {}).typing_events is False


@pytest.mark.parametrize("value", ["yes", "True", 1, [], {}, 0.0])
def test_typing_that_is_neither_true_nor_false_is_a_problem(value: object) -> None:
    assert problems(as_json(typingEvents=value)) == {("/typingEvents", "invalid_value")}


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("null", "invalid_value"),
        ("undefined", "invalid_value"),
        ("", "required"),
        (None, "required"),
        (7, "invalid_type"),
        ("x" * 129, "too_long"),
        ("a\nb", "invalid_value"),
    ],
)
def test_invalid_consumer_id_is_a_problem(value: object, code: str) -> None:
    """Pusher protocol, authorization: `undefined` as a text is a bug of the client."""
    assert problems(as_json(consumerId=value)) == {("/consumerId", code)}


def test_all_problems_are_named_at_once() -> None:
    """Decisions 1: every problem found, not just the first; unknown fields are among them."""
    assert problems(b"socket_id=1&consumerId=c1&a%2Fb=1&resume=evt_1") == {
        ("/a~1b", "unknown_field"),
        ("/socket_id", "invalid_format"),
        ("/channel_name", "required"),
        ("/resume", "invalid_value"),
    }
    assert problems(as_json(), {"resume": "soon"}) == {("?resume", "invalid_value")}


@pytest.mark.parametrize("choice", ["auto", "live", "evt_01JD5Q0000000000000000000A"])
def test_consumer_may_choose_its_start(choice: str) -> None:
    assert parse_authorization(as_json(resume=choice), {}).resume == choice


@pytest.mark.parametrize("body", [b"{", b'{"a":1}{', b"\xff\xfe", b"&".join([b"a=1"] * 60)])
def test_body_that_is_neither_json_nor_a_form_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequest):
        parse_authorization(body, {})


@given(st.binary(), st.dictionaries(st.sampled_from(["socket_id", "consumerId", "resume"]), st.text()))
def test_any_bytes_at_all_are_read_or_refused(body: bytes, query: dict[str, str]) -> None:
    try:
        request = parse_authorization(body, query)
    except (Invalid, BadRequest):
        return
    assert request.consumer_id
    assert request.socket_id
