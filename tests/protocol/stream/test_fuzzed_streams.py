"""Bytes and frames that no Pusher client sends: each connection is answered or closed, and the service continues."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong, TextMessage
from wsproto.utilities import LocalProtocolError

from deskwire.http.stream import pusher
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.properties import budget, here, hold
from tests.support.sockets.raw_peer import RawPeer, upgrade
from tests.support.sockets.request_bytes import CUTS, cut

_NAMES: Final = st.sampled_from(
    [
        "pusher:subscribe",
        "pusher:unsubscribe",
        "pusher:ping",
        "pusher:pong",
        "pusher:signin",
        "client-x",
        "",
        "x" * 300,
    ]
)
_JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_CHANNELS: Final = st.sampled_from(
    ["private-project-x", "private-", "presence-x", "", "\x00", "a" * 201, "private-conversation-cnv_"]
)
_AUTHS: Final = st.sampled_from(["", ":", "x:y", "x:e30.e30.", "x:....", "\u202e", "a"]).flatmap(
    lambda text: st.sampled_from([1, 1, 1, 5_000]).map(lambda times: text * times)
)
_DATA: Final = st.one_of(
    _JSON,
    st.fixed_dictionaries({"channel": _CHANNELS | _JSON, "auth": _AUTHS | _JSON}),
    st.fixed_dictionaries({"channel": _CHANNELS, "auth": _AUTHS}).map(
        lambda data: orjson.dumps(data).decode()
    ),
)
_TEXTS: Final = st.one_of(
    st.fixed_dictionaries({"event": _NAMES | _JSON}, optional={"data": _DATA, "channel": _CHANNELS}).map(
        lambda message: orjson.dumps(message, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    ),
    st.text(max_size=30),
    st.sampled_from(
        ["[" * 20_000, '{"event":"pusher:ping","event":1}', '{"event":"\\ud800"}', "NaN", "\ufeff{}"]
    ),
)
_FRAMES: Final = st.one_of(
    _TEXTS.map(TextMessage),
    _TEXTS.map(TextMessage),
    st.binary(max_size=20).map(BytesMessage),
    st.binary(max_size=20).map(Ping),
    st.binary(max_size=20).map(Pong),
)


@budget(100)
@given(st.text() | _TEXTS)
def test_every_text_is_a_value_to_the_codec(text: str) -> None:
    received = pusher.decode(text.encode("utf-8", "replace").decode())
    if isinstance(received, pusher.Subscribe | pusher.Unsubscribe):
        assert 0 < len(received.channel) <= 200


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Yield a service that admits all examples at once, from one address."""
    async with running(tmp_path, stream_unsubscribed_each=100_000) as started:
        yield started


async def dial(service: Service) -> trio.SocketStream:
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    return await trio.open_tcp_stream(host, int(port))


async def stream_key(service: Service) -> str:
    return str((await service.http.get("/s2s/project")).json()["streamKey"])


async def test_stream_answers_a_ping_after_any_frames_or_closes_with_a_code(
    service: Service,
) -> None:
    key = await stream_key(service)

    async def talk(frames: list[Event]) -> None:
        with trio.fail_after(HANG_TIMEOUT_S):
            async with await dial(service) as stream:
                peer = RawPeer(stream)
                await peer.open(upgrade(key=key))
                assert (await peer.message())["event"] == "pusher:connection_established"
                with suppress(
                    trio.BrokenResourceError, LocalProtocolError
                ):  # the connection was closed in between
                    for frame in frames:
                        await peer.send(frame)
                    await peer.send(TextMessage('{"event":"pusher:ping","data":{}}'))
                await until_pong(peer)

    @budget(40)
    @given(st.lists(_FRAMES, min_size=1, max_size=4))
    def run(frames: list[Event]) -> None:
        here(lambda: talk(frames))

    await hold(run)
    assert (await service.http.get("/s2s/project")).status_code == 200


async def until_pong(peer: RawPeer) -> None:
    """Read until the answer to the ping, or the end, which has a code."""
    while True:
        event: Any = await peer.until(TextMessage, CloseConnection)
        if event is None:
            return
        if isinstance(event, CloseConnection):
            assert 1000 <= event.code < 5000, event
            return
        if orjson.loads(event.data)["event"] == "pusher:pong":
            return


_OPCODES: Final = st.sampled_from([0, 0, 1, 1, 2, 8, 9, 10, 3, 11])
_PAYLOADS: Final = st.one_of(
    st.just(b""),
    st.binary(max_size=8),
    st.sampled_from([b"x" * 125, b"x" * 126, b"[" * 65_535, b"[" * 65_536, b"\xed\xa0\x80", b"\x03\xe8"]),
    _TEXTS.map(lambda text: text.encode("utf-8", "replace")),
)


def frame(opcode: int, fin: bool, payload: bytes, masked: bool = True) -> bytes:
    """Return a frame as a client makes it, or should not."""
    size, mask = len(payload), 0x80 * masked
    if size < 126:
        length = bytes((mask | size,))
    elif size < 1 << 16:
        length = bytes((mask | 126,)) + size.to_bytes(2)
    else:
        length = bytes((mask | 127,)) + size.to_bytes(8)
    return bytes((0x80 * fin | opcode,)) + length + (bytes(4) if masked else b"") + payload


_FRAME_BYTES: Final = st.builds(
    frame, _OPCODES, st.booleans(), _PAYLOADS, st.sampled_from([True] * 9 + [False])
)
_RUNS: Final = st.tuples(_FRAME_BYTES, st.sampled_from([1, 1, 1, 2, 20, 600]))


async def test_frames_of_any_kind_and_number_are_answered_or_end_the_connection(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """Random parts in any order, more than a connection may send, split anywhere, also after a refusal."""
    keys = [await stream_key(service), "unknown"]

    async def talk(key: str, data: bytes, marks: list[int]) -> None:
        with trio.fail_after(HANG_TIMEOUT_S):
            async with await dial(service) as stream:
                await stream.send_all(upgrade(key=key))
                with suppress(trio.BrokenResourceError):
                    for piece in cut(data, marks):
                        await stream.send_all(piece)
                    await stream.send_eof()
                    async for _ in stream:
                        pass

    @budget(40)
    @given(st.sampled_from(keys), st.lists(_RUNS, min_size=1, max_size=5), CUTS)
    def run(key: str, runs: list[tuple[bytes, int]], marks: list[int]) -> None:
        data = b"".join(made * times for made, times in runs if len(made) * times < 1 << 22)
        here(lambda: talk(key, data, marks))

    await hold(run)
    assert "connection_failed" not in capsys.readouterr().out
    assert (await service.http.get("/s2s/project")).status_code == 200


_HEADS: Final = st.sampled_from(
    [
        b"Transfer-Encoding: chunked\r\n\r\nXX\r\n",
        b"Transfer-Encoding: gzip\r\n\r\n",
        b"Content-Length: 5\r\n\r\n",
        b"Content-Length: x\r\n\r\n",
        b"Sec-WebSocket-Key: other\r\n\r\n",
        b"Sec-WebSocket-Version: 12\r\n\r\n",
        b"Sec-WebSocket-Protocol: " + b"a," * 4_000 + b"\r\n\r\n",
        b"Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=99\r\n\r\n",
        b"X: a\r\n b\r\n\r\n",
        b"X: " + b"a" * 20_000 + b"\r\n\r\n",
        b"Host: y\r\n\r\n",
        b"Expect: 100-continue\r\n\r\n",
        b"\r\n\x00\xff\x00\xff",
        b"\r\n\x81\xff" + b"\xff" * 12,
        b"\r\n\x88\x82\x00\x00\x00\x00\x03\xe8",
        b"\r\n\xf1\x80\x00\x00\x00\x00",
        b"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ]
)
_TARGETS: Final = st.sampled_from(
    [
        b"/app/",
        b"/app/%00",
        b"/app/%ff?protocol=7",
        b"/app/x?protocol=%ff",
        b"/app/x?" + b"&" * 5_000,
        b"/app/../v3",
    ]
)


async def test_no_bytes_on_the_streams_path_leave_a_connection_hanging(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    good = upgrade(key=await stream_key(service)).removesuffix(b"\r\n")

    async def send(data: bytes, marks: list[int]) -> None:
        with trio.fail_after(HANG_TIMEOUT_S):
            async with await dial(service) as stream:
                with suppress(trio.BrokenResourceError):
                    for piece in cut(data, marks):
                        await stream.send_all(piece)
                    await stream.send_eof()
                    async for _ in stream:
                        pass

    @budget(50)
    @given(st.none() | _TARGETS, st.lists(_HEADS, min_size=1, max_size=2), st.integers(0, 3), CUTS)
    def run(target: bytes | None, heads: list[bytes], garbled: int, marks: list[int]) -> None:
        data = bytearray(good + b"".join(heads))
        if target is not None:
            data[4 : data.index(b" HTTP")] = target
        for number in range(garbled):
            data[(number * 97 + len(data)) % len(data)] ^= 1 << number
        here(lambda: send(bytes(b"GET /app/" + data[9:]), marks))

    await hold(run)
    assert "connection_failed" not in capsys.readouterr().out
    assert (await service.http.get("/s2s/project")).status_code == 200
