"""The stream's messages, as a consumer reads and writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.replay.frames import Established, Event, Failure, Refused, Subscribed, decode, subscribe

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["event", "data", "code"]) | st.text(), inner)
    ),
)


@pytest.mark.parametrize(
    ("message", "frame"),
    [
        (
            {"event": "pusher:connection_established", "data": '{"socket_id":"1.2","activity_timeout":30}'},
            Established("1.2"),
        ),
        (
            {"event": "pusher_internal:subscription_succeeded", "data": '{"resumedAfter":null,"gap":true}'},
            Subscribed(gap=True),
        ),
        ({"event": "pusher_internal:subscription_succeeded", "data": "{}"}, Subscribed(gap=False)),
        ({"event": "pusher:subscription_error", "data": '{"status":409}'}, Refused('{"status":409}')),
        ({"event": "pusher:error", "data": {"code": 4009, "message": "gone"}}, Failure(4009, "gone")),
        ({"event": "pusher:error", "data": {"message": "what?"}}, Failure(None, "what?")),
        ({"event": "message.created", "data": '{"id":"evt_1"}'}, Event("message.created", b'{"id":"evt_1"}')),
        ({"event": "pusher:pong", "data": "{}"}, None),
    ],
)
def test_a_message_of_the_protocol_is_understood(message: dict[str, Any], frame: object) -> None:
    assert decode(json.dumps({**message, "channel": "private-x"})) == frame


def test_events_bytes_are_the_sent_ones_with_any_escapes_in_the_frame() -> None:
    body = '{"text":"\u05e9 \U0001f600 \\u0061 \\\\"}'
    assert decode(json.dumps({"event": "x", "data": body})) == Event("x", body.encode())
    assert decode(json.dumps({"event": "x", "data": body}, ensure_ascii=False)) == Event("x", body.encode())


@given(st.text() | anything.map(json.dumps))
def test_no_message_makes_reading_fail(text: str) -> None:
    decode(text)


@pytest.mark.parametrize(
    "text", ["", "null", '{"data":"{}"}', '{"event":"pusher:connection_established","data":"1"}']
)
def test_malformed_frame_is_kept_as_an_event_without_a_name(text: str) -> None:
    assert decode(text) == Event("", text.encode())


def test_subscribing_names_channel_and_authorization() -> None:
    data = {"channel": "private-x", "auth": "key:token"}
    assert json.loads(subscribe("private-x", "key:token")) == {"event": "pusher:subscribe", "data": data}
