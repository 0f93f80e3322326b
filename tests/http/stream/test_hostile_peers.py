"""Peers that break the rules, on a real socket; none of them may leave more than a closed connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage

from deskwire.engine.core.values import replace
from deskwire.engine.stream.token import Grant, issue
from deskwire.http.stream.websocket import Handshake
from tests.support.deadlines import HANG_TIMEOUT_S, fail_after_idle
from tests.support.sockets.raw_peer import RawPeer, upgrade
from tests.support.streaming import CHANNEL, KEY, KEY_ID, NOON, PROJECT_ID, STREAM_KEY, Front, Stage

_MASK = b"\x00\x00\x00\x00"


@pytest.fixture
async def peer(front: Front) -> AsyncIterator[RawPeer]:
    """Yield a client with its socket id, whose errors must not become tracebacks."""
    with capture_logs() as entries:
        peer = RawPeer(await front.raw())
        await peer.open()
        assert (await peer.message())["event"] == "pusher:connection_established"
        yield peer
        await trio.aclose_forcefully(peer.stream)
        front.stop.set()
        with trio.fail_after(HANG_TIMEOUT_S):
            await front.stopped.wait()
    assert not [entry for entry in entries if entry["log_level"] in ("error", "critical")]


async def test_a_message_in_many_fragments_is_one_message(peer: RawPeer) -> None:
    """RFC 6455 5.4."""
    for part, last in (('{"event":', False), ('"pusher:', False), ('ping"}', True)):
        await peer.send(TextMessage(part, message_finished=last))
        await peer.send(Ping(b"between"))
    while isinstance(event := await peer.event(), Pong):
        assert event.payload == b"between"
    assert isinstance(event, TextMessage)
    assert orjson.loads(event.data)["event"] == "pusher:pong"


@pytest.mark.parametrize(
    "frames",
    [
        b"\x81\x82" + _MASK + b"\xff\xfe",
        b"\x81\x83" + _MASK + b"\xed\xa0\x80",  # half of a surrogate pair
        b"\x81\x81" + _MASK + b"\xc3",  # cut off in a character
        b"\x01\x81" + _MASK + b"\xc3" + b"\x80\x81" + _MASK + b"\xc3",  # wrong where two fragments meet
        b"\x88\x84" + _MASK + b"\x03\xe8\xff\xfe",  # in the reason of a close frame
        b"\x88\x84" + _MASK + b"\x03\xf6\xff\xfe",  # in that of a code which wsproto does not know
    ],
)
async def test_bad_utf_8_closes_with_1007(peer: RawPeer, frames: bytes) -> None:
    """RFC 6455 5.5.1, 8.1."""
    await peer.stream.send_all(frames)
    assert await peer.close_code() == 1007


async def test_character_in_two_fragments_around_a_ping_is_read_whole(peer: RawPeer) -> None:
    """RFC 6455 5.4: fragments end anywhere, even within a character, and control frames come between."""
    text = '{"event":"pusher:ping","data":"ü"}'.encode()
    middle = text.index("ü".encode()) + 1
    first = bytes((0x01, 0x80 | middle)) + _MASK + text[:middle]
    last = bytes((0x80, 0x80 | len(text) - middle)) + _MASK + text[middle:]
    await peer.stream.send_all(first + b"\x89\x82" + _MASK + b"hi" + last)
    assert (await peer.until(Pong)).payload == b"hi"
    assert (await peer.message())["event"] == "pusher:pong"


@pytest.mark.parametrize(
    "frame",
    [
        b"\x81\x02ab",  # not masked (RFC 6455 5.1)
        b"\xc1\x82" + _MASK + b"ab",  # a reserved bit (5.2)
        b"\x83\x80" + _MASK,  # a reserved opcode (5.2)
        b"\x80\x80" + _MASK,  # a continuation of nothing (5.4)
        b"\x09\x80" + _MASK,  # a fragmented ping (5.5)
        b"\x89\xfe\x00\x7e" + _MASK,  # a ping of 126 bytes (5.5)
        b"\x81\xff" + b"\xff" * 8 + _MASK,  # 2^64 bytes (5.2)
        b"\x81\xfe\x00\x02" + _MASK + b"{}",  # a length in more bytes than it needs (5.2)
        b"\x01\x81" + _MASK + b"{" + b"\x81\x81" + _MASK + b"}",  # a message within another (5.4)
        b"\x88\x81" + _MASK + b"\x03",  # half a close code (5.5.1)
        b"\x88\x82" + _MASK + b"\x03\xed",  # 1005, which is never sent (7.4.1)
        b"\x88\x82" + _MASK + b"\x03\xf8",  # 1016, which is not registered
        b"\x88\x82" + _MASK + b"\x00\x07",  # no close code at all (7.4.2)
    ],
)
async def test_a_frame_that_breaks_the_rules_closes_with_1002(peer: RawPeer, frame: bytes) -> None:
    await peer.stream.send_all(frame)
    assert await peer.close_code() == 1002


async def test_a_message_above_the_limit_closes_with_1009(peer: RawPeer) -> None:
    """Pusher protocol, messages: inbound messages are limited to 64 KiB."""
    await peer.send(TextMessage("x" * 65_537))
    assert await peer.close_code() == 1009


async def test_a_megabyte_is_refused_as_soon_as_the_limit_is_passed(peer: RawPeer) -> None:
    """The length in its head is not waited for."""
    head = b"\x81\xff" + (1_000_000).to_bytes(8)
    await peer.stream.send_all(head + _MASK + b"x" * 70_000)
    assert await peer.close_code() == 1009


async def test_data_after_a_broken_frame_is_discarded(peer: RawPeer) -> None:
    """Closing with unread input would reset the connection, and the close frame with it."""
    await peer.stream.send_all(b"\x81\x02ab" + b"\xff" * 300_000)
    assert await peer.close_code() == 1002


@pytest.mark.parametrize("opcode", [b"\x81", b"\x82", b"\x01"], ids=["text", "binary", "fragment"])
async def test_a_frame_is_refused_as_soon_as_its_length_is_too_large(peer: RawPeer, opcode: bytes) -> None:
    """Wait for nothing of its payload, nor its mask (RFC 6455 10.4)."""
    await peer.stream.send_all(opcode + b"\xff" + (1 << 62).to_bytes(8))
    with fail_after_idle(3):
        assert await peer.close_code() == 1009


async def test_the_longest_message_is_taken(peer: RawPeer) -> None:
    message = '{"event":"pusher:ping","data":"%s"}'
    await peer.send(TextMessage(message % ("x" * (65_536 - len(message) + 2))))
    assert (await peer.message())["event"] == "pusher:pong"


@pytest.mark.parametrize("frame", [b"\x81\x02ab", b"\x82\x80" + _MASK], ids=["malformed", "binary"])
async def test_a_peer_that_broke_the_rules_is_not_waited_for(peer: RawPeer, frame: bytes) -> None:
    """RFC 6455 7.1.1: the server closes TCP; this peer answers no close frame, and does not close."""
    await peer.stream.send_all(frame)
    assert await peer.close_code() in (1002, 1003)
    with fail_after_idle(3):  # it is one second; all others get five
        assert await peer.stream.receive_some() == b""


async def test_endless_fragments_close_with_1009_before_they_end(peer: RawPeer) -> None:
    for _ in range(17):
        await peer.send(TextMessage("x" * 4096, message_finished=False))
    assert await peer.close_code() == 1009


async def test_a_binary_message_closes_with_1003(peer: RawPeer) -> None:
    await peer.send(BytesMessage(b"{}"))
    assert await peer.close_code() == 1003


async def test_a_malformed_message_is_named_and_the_connection_stays(peer: RawPeer) -> None:
    """Pusher protocol, messages: `pusher:error` without a code; a code would make some clients leave."""
    await peer.send(TextMessage("{"))
    message = await peer.message()
    assert message["event"] == "pusher:error"
    assert "code" not in message["data"]
    await peer.send(TextMessage('{"event":"client-x","channel":"private-x","data":{}}'))
    assert (await peer.message())["data"]["code"] == 4301
    await peer.send(TextMessage('{"event":"pusher:ping"}'))
    assert (await peer.message())["event"] == "pusher:pong"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ({"channel": "private-project-prj_0", "auth": "shop-stream:x"}, 403),
        ({"channel": "public"}, 403),
        ({"channel": "presence-x\n", "auth": 7}, 403),
    ],
)
async def test_a_channel_that_is_not_the_projects_is_refused(
    peer: RawPeer, data: dict[str, object], status: int
) -> None:
    """Decisions 5: anything else is refused; the connection stays."""
    await peer.send(TextMessage(orjson.dumps({"event": "pusher:subscribe", "data": data}).decode()))
    message = await peer.message()
    assert message["event"] == "pusher:subscription_error"
    assert orjson.loads(message["data"])["status"] == status


@pytest.mark.parametrize("where", ["channel", "consumer_id", "key_id", "resume"])
async def test_half_a_surrogate_pair_in_a_token_is_refused_without_disconnection(
    front: Front, where: str
) -> None:
    client = await front.connect()
    grant = Grant(PROJECT_ID, KEY_ID, client.socket_id, CHANNEL, "c1")
    unsound: Any = {where: "\ud800"}
    token = issue(KEY, replace(grant, **unsound), now_ms=NOON)
    await client.say("pusher:subscribe", {"channel": CHANNEL, "auth": f"{STREAM_KEY}:{token}"})
    refused = await client.expect("pusher:subscription_error")
    assert (refused["status"], "surrogate" in refused["error"]) == (401, True)
    await client.subscribe("c1")


@pytest.mark.parametrize(
    "text",
    [
        '{"event":"pusher:subscribe","data":{"channel":"private-contact-\\ud800","auth":"x"}}',
        '{"event":"pusher:subscribe","data":"{\\"channel\\":\\"\\\\udfff\\",\\"auth\\":\\"\\\\ud800\\"}"}',
        '{"event":"pusher:unsubscribe","data":{"channel":"\\ud800"}}',
        '{"event":"client-\\ud800","data":{}}',
    ],
)
async def test_unpaired_surrogate_is_reported_and_the_connection_stays(peer: RawPeer, text: str) -> None:
    await peer.send(TextMessage(text))
    told = await peer.message()
    assert (told["event"], "code" in told["data"]) == ("pusher:error", False)
    await peer.send(TextMessage('{"event":"pusher:ping"}'))
    assert (await peer.message())["event"] == "pusher:pong"


async def test_a_close_frame_is_answered_with_its_code(peer: RawPeer) -> None:
    """RFC 6455 5.5.1."""
    await peer.send(CloseConnection(1000, "bye"))
    assert await peer.close_code() == 1000
    assert await peer.event() is None


async def test_a_close_frame_without_a_code_is_answered_and_4000s_are_too(front: Front) -> None:
    """RFC 6455 5.5.1, 7.4.2: an empty close frame, and codes for private use."""
    for frame, expected in ((b"\x88\x80" + _MASK, 1005), (b"\x88\x82" + _MASK + b"\x0f\xa0", 4000)):
        peer = RawPeer(await front.raw())
        await peer.open()
        await peer.stream.send_all(frame)
        assert await peer.close_code() == expected
        assert await peer.event() is None


@pytest.mark.parametrize("code", [1012, 1013, 1014])
async def test_a_code_that_was_registered_later_is_echoed(peer: RawPeer, code: int) -> None:
    """IANA's registry of close codes; this test's own library knows 1014 as little as ours does."""
    frame = code.to_bytes(2) + "grüße".encode()
    await peer.stream.send_all(bytes((0x88, 0x80 | len(frame))) + _MASK + frame)
    said = b""
    while data := await peer.stream.receive_some():
        said += data
    assert said == bytes((0x88, len(frame))) + frame


async def test_data_after_a_close_frame_is_ignored(peer: RawPeer) -> None:
    """RFC 6455 5.5.1."""
    await peer.stream.send_all(b"\x88\x82" + _MASK + b"\x03\xe8" + b"\x81\x82" + _MASK + b"{}")
    assert await peer.close_code() == 1000
    assert await peer.event() is None


async def test_reset_within_a_frame_leaves_no_state(peer: RawPeer) -> None:
    await peer.stream.send_all(b"\x81\xfe\x10")


async def test_an_unknown_app_key_is_refused_after_the_upgrade(front: Front) -> None:
    """Pusher protocol, connecting: 4001 by message and by close code; clients retry an HTTP 401 without end."""
    client = await front.dial(key="no-such-app")
    assert (await client.expect("pusher:error"))["code"] == 4001
    assert await client.closed() == 4001


@pytest.mark.parametrize(
    ("query", "fine"), [("", 1), ("?protocol=5", 1), ("?protocol=8", 0), ("?protocol=", 0)]
)
async def test_protocols_5_to_7_and_none_at_all_are_spoken(front: Front, query: str, fine: bool) -> None:
    """Decisions 5; Pusher protocol, connecting: else 4007."""
    client = await front.dial(query)
    message = await client.receive()
    assert message["event"] == ("pusher:connection_established" if fine else "pusher:error")
    if not fine:
        assert await client.closed() == 4007


async def test_the_sub_protocol_is_chosen_only_when_it_is_offered(front: Front) -> None:
    """Pusher protocol, connecting: Swift offers one."""
    plain, offering = RawPeer(await front.raw()), RawPeer(await front.raw())
    assert b"Sec-WebSocket-Protocol" not in await plain.open()
    offer = "Sec-WebSocket-Protocol: x, pusher-channels-protocol-7"
    head = await offering.open(upgrade("?protocol=7", "shop-stream", offer))
    assert b"Sec-WebSocket-Protocol: pusher-channels-protocol-7" in head


async def test_request_without_upgrade_gets_426(front: Front) -> None:
    """RFC 9110 15.5.22."""
    stream = await front.raw()
    await stream.send_all(b"GET /app/shop-stream HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = b""
    while data := await stream.receive_some():
        answer += data
        await stream.send_eof()
    assert answer.startswith(b"HTTP/1.1 426 Upgrade Required")
    assert b"application/problem+json" in answer


async def test_frames_sent_with_the_request_are_received(front: Front, stage: Stage) -> None:
    peer = RawPeer(await front.raw())
    ping = peer.wire.send(TextMessage('{"event":"pusher:ping"}'))
    await peer.open(upgrade() + ping)
    assert {(await peer.message())["event"], (await peer.message())["event"]} == {
        "pusher:connection_established",
        "pusher:pong",
    }


@given(st.binary(max_size=300))
@settings(max_examples=300)
def test_any_request_at_all_gets_an_answer_or_waits_for_more(data: bytes) -> None:
    for request in (data, b"GET /app/" + data, upgrade()[:-2] + data + b"\r\n\r\n"):
        Handshake().feed(request)
