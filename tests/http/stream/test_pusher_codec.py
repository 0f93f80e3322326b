"""The codec against `pusher.md`'s facts about real clients, and against any text at all."""

from __future__ import annotations

import re

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deskwire.http.stream import pusher

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
NAMES = st.sampled_from(["pusher:subscribe", "pusher:unsubscribe", "pusher:ping", "client-x", "other", ""])


@given(st.text())
@example("[" * 100_000)
@example("\ud800")
@example('{"event":"pusher:subscribe","data":"\\ud800"}')
def test_any_text_at_all_decodes_to_a_value(text: str) -> None:
    assert isinstance(pusher.decode(text), pusher.Inbound)


@pytest.mark.thorough
@given(NAMES | JSON, JSON)
def test_any_fields_at_all_decode_to_a_value(name: object, data: object) -> None:
    try:
        text = orjson.dumps({"event": name, "data": data}).decode()
    except (TypeError, orjson.JSONEncodeError):
        return  # not JSON: covered by any text
    assert isinstance(pusher.decode(text), pusher.Inbound)


@pytest.mark.parametrize(
    "text",
    [
        '{"event":"pusher:ping","data":{}}',  # pusher-js
        '{"event":"pusher:ping","data":""}',  # Pysher
        '{"event": "pusher:ping"}',  # Java
    ],
)
def test_every_client_spells_its_ping_another_way(text: str) -> None:
    """Pusher protocol, messages: `data` may be an object, empty, or missing."""
    assert pusher.decode(text) == pusher.Ping()


@pytest.mark.parametrize(
    "data",
    ['{"auth":"a:b","channel":"private-x"}', '"{\\"auth\\":\\"a:b\\",\\"channel\\":\\"private-x\\"}"'],
)
def test_a_subscription_is_read_from_an_object_or_its_text(data: str) -> None:
    text = f'{{"event":"pusher:subscribe","data":{data}}}'
    assert pusher.decode(text) == pusher.Subscribe("private-x", "a:b")


@pytest.mark.parametrize("data", ["{}", '{"channel":""}', '{"channel":7}', f'{{"channel":"{"x" * 201}"}}'])
def test_a_subscription_without_a_usable_channel_is_malformed(data: str) -> None:
    decoded = pusher.decode(f'{{"event":"pusher:subscribe","data":{data}}}')
    assert isinstance(decoded, pusher.MalformedMessage)


@pytest.mark.parametrize("text", ["", "null", "[]", '"x"', "{}", '{"event":7}', '{"event":""}', "{"])
def test_message_without_an_event_name_is_malformed(text: str) -> None:
    assert isinstance(pusher.decode(text), pusher.MalformedMessage)


def test_event_names_distinguish_client_events_sign_ins_and_others() -> None:
    assert pusher.decode('{"event":"client-typing","data":{}}') == pusher.ClientEvent("client-typing")
    assert pusher.decode('{"event":"pusher:signin"}') == pusher.Signin()
    assert pusher.decode('{"event":"pusher:pong","data":""}') == pusher.Pong()
    assert pusher.decode('{"event":"pusher:unknown"}') == pusher.Ignored("pusher:unknown")


def test_data_is_a_text_everywhere_but_in_errors() -> None:
    """Pusher protocol, messages: the one choice that works with all clients."""
    texts = [
        pusher.connection_established("1.2"),
        pusher.subscription_succeeded("private-x", "evt_1", gap=True),
        pusher.subscription_error("private-x", "AuthError", "no", 401),
        pusher.pong(),
        pusher.event("message.created", "private-x", b'{"id":"evt_1"}'),
    ]
    for text in texts:
        message = orjson.loads(text)
        assert isinstance(orjson.loads(message["data"]), dict)
    assert orjson.loads(pusher.error("why", 4009)) == {
        "event": "pusher:error",
        "data": {"code": 4009, "message": "why"},
    }
    assert orjson.loads(pusher.error("why"))["data"] == {"message": "why"}


def test_the_first_message_has_a_socket_id_that_server_sdks_accept() -> None:
    """Pusher protocol, connecting: `\\d+\\.\\d+`, and an activity timeout that is not zero."""
    data = orjson.loads(orjson.loads(pusher.connection_established(pusher.new_socket_id()))["data"])
    assert re.fullmatch(r"\d+\.\d+", data["socket_id"])
    assert data["activity_timeout"] == 30


@given(JSON)
def test_an_events_data_is_its_stored_envelope_byte_for_byte(data: object) -> None:
    """Decisions 4: the envelope's bytes are the same on every channel."""
    envelope = orjson.dumps(
        {"data": orjson.loads(orjson.dumps(str(data).encode("utf-8", "replace").decode()))}
    )
    assert orjson.loads(pusher.event("x", "private-x", envelope))["data"].encode() == envelope
