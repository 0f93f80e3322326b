"""One machine can't use up the connections, nor the memory for responses."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from deskwire.http.server.listener import FrontLimits
from deskwire.http.transport.connection import FrontStream
from deskwire.http.transport.connection_slots import SHARE, Connections, ConnectionSlot
from deskwire.http.transport.fair_scheduling import FairScheduler
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.certificates import Files
from tests.support.streaming import NOON, Front, Stage, real_front, real_stage, small_app

HELLO = b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
ATTACKER = "127.0.0.2"


def taken(connections: Connections, *peers: str) -> tuple[list[ConnectionSlot], list[str]]:
    """Places for connections from these addresses, and a list of those that are ended."""
    ended: list[str] = []
    places = []
    for number, peer in enumerate(peers):
        place = connections.admit(peer, lambda name=f"{peer} {number}": ended.append(name))  # type: ignore[misc]
        assert place is not None
        places.append(place)
    return places, ended


async def test_largest_network_loses_its_oldest_connection_first() -> None:
    connections = Connections(4)
    _, ended = taken(connections, "192.0.2.1", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1")
    assert connections.admit("192.0.2.9", lambda: None)
    assert ended == ["2001:db8::1 1"]
    assert (connections.open, connections.ended["idle"]) == (4, 1)


async def test_anonymous_connections_are_evicted_before_identified_ones() -> None:
    connections = Connections(3)
    (known, busy, idle), ended = taken(connections, "192.0.2.1", "192.0.2.2", "192.0.2.3")
    known.identify("prj_1")
    busy.set_idle(idle=False)
    assert connections.admit("192.0.2.9", lambda: ended.append("new"))
    assert ended == ["192.0.2.3 2"]
    idle.leave()  # later, as its task ends: it is counted once
    assert connections.open == 3
    new = connections.admit("192.0.2.9", lambda: ended.append("newer"))
    assert new is not None
    assert ended[1:] == ["new"]
    new.set_idle(idle=False)
    assert connections.make_room()
    assert ended[2:] == ["192.0.2.1 0"]
    assert connections.make_room()
    assert ended[3:] == ["192.0.2.2 1"]


async def test_identified_busy_connection_stays_and_the_new_one_is_refused() -> None:
    connections = Connections(2)
    (working, consumer), ended = taken(connections, "192.0.2.1", "192.0.2.2")
    working.identify("prj_1")
    working.set_idle(idle=False)
    consumer.keep_open()
    assert connections.admit("192.0.2.9", lambda: None) is None
    assert (ended, connections.ended["refused"], connections.open) == ([], 1, 2)
    working.set_idle(idle=True)
    assert connections.admit("192.0.2.9", lambda: None)
    assert ended == ["192.0.2.1 0"]


async def test_connection_with_most_unsent_bytes_for_longest_ends_first(autojump_clock: object) -> None:
    connections = Connections(9, unsent_max=1_000)
    (slow, small, late), ended = taken(connections, "192.0.2.1", "192.0.2.2", "192.0.2.3")
    slow.add_unsent(249)
    small.add_unsent(10)
    await trio.sleep(5)  # virtual time: the mock clock jumps
    late.add_unsent(250)
    await trio.sleep(1)  # virtual time: the mock clock jumps
    others, _ = taken(connections, *(f"198.51.100.{n}" for n in range(2)))
    for other in others:
        other.add_unsent(240)
    assert (connections.unsent, ended) == (989, [])
    others[0].add_unsent(9)
    others[1].add_unsent(10)
    assert ended == ["192.0.2.1 0", "192.0.2.3 2"]
    slow.remove_unsent(249)  # it learns of it later
    assert connections.unsent == 509


async def test_address_and_project_have_a_share_of_unsent_bytes(autojump_clock: object) -> None:
    connections = Connections(99, unsent_max=100 * SHARE)
    one, ended = taken(connections, *["192.0.2.1"] * 3)
    for place in one:
        await trio.sleep(1)  # virtual time: the mock clock jumps
        place.add_unsent(34)
    assert ended == ["192.0.2.1 0"]
    two, ended_too = taken(connections, "192.0.2.5", "192.0.2.6", "192.0.2.7")
    for place in two:
        await trio.sleep(1)  # virtual time: the mock clock jumps
        place.identify("prj_1")
        place.add_unsent(34)
    assert ended_too == ["192.0.2.5 0"]


async def test_one_response_above_the_limit_is_sent() -> None:
    connections = Connections(9, unsent_max=100)
    (place,), ended = taken(connections, "192.0.2.1")
    place.add_unsent(1_000)
    assert not ended
    place.remove_unsent(1_000)
    assert connections.unsent == 0


class Machine(RuleBasedStateMachine):
    """Slots, compared with a plain list of their states."""

    def __init__(self) -> None:
        super().__init__()
        self.connections = Connections(6, unsent_max=400)
        self.ended: list[int] = []
        self.open: dict[int, tuple[ConnectionSlot, str]] = {}
        self.state: dict[int, tuple[int, bool, str]] = {}  # since, idle, owner
        self.unsent: dict[int, int] = {}
        self.made = 0
        self.clock = 0

    def expected(self) -> int | None:
        """The one that is to make room."""
        for idle, known in ((True, False), (True, True), (False, False)):
            fit = [n for n, (_, i, owner) in self.state.items() if i == idle and bool(owner) == known]
            if fit:
                sizes = {n: sum(self.open[m][1] == self.open[n][1] for m in fit) for n in fit}
                most = max(sizes.values())
                return min((n for n in fit if sizes[n] == most), key=lambda n: self.state[n][0])
        return None

    @rule(peer=st.sampled_from(["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::ffff"]))
    def arrive(self, peer: str) -> None:
        number, self.made, self.clock = self.made, self.made + 1, self.clock + 1
        victim = self.expected() if len(self.open) == 6 else None
        sizes_tie = victim is not None and self.tied(victim)
        before = len(self.ended)
        place = self.connections.admit(peer, lambda: self.ended.append(number))
        if len(self.open) == 6 and victim is None:
            assert place is None
            return
        assert place is not None
        for gone in self.ended[before:]:
            assert gone == victim or sizes_tie
            self.forget(gone)
        self.open[number] = (place, place.network)
        self.state[number] = (self.clock, True, "")

    def tied(self, victim: int) -> bool:
        """Whether two networks have as many that could be missed: then either may make room."""
        _, idle, owner = self.state[victim]
        fit = [n for n, (_, i, o) in self.state.items() if i == idle and bool(o) == bool(owner)]
        counts = sorted(
            sum(self.open[m][1] == network for m in fit) for network in {self.open[n][1] for n in fit}
        )
        return len(counts) > 1 and counts[-1] == counts[-2]

    def forget(self, number: int) -> None:
        del self.open[number], self.state[number]
        self.unsent.pop(number, None)

    def any(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from(sorted(self.open)))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), idle=st.booleans())
    def rest(self, data: st.DataObject, idle: bool) -> None:
        number, self.clock = self.any(data), self.clock + 1
        since, was, owner = self.state[number]
        self.open[number][0].set_idle(idle=idle)
        self.state[number] = (since if was == idle else self.clock, idle, owner)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def show(self, data: st.DataObject) -> None:
        number, self.clock = self.any(data), self.clock + 1
        since, idle, owner = self.state[number]
        self.open[number][0].identify("prj_1")
        self.state[number] = (since if owner else self.clock, idle, "prj_1")

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        number = self.any(data)
        self.open[number][0].leave()
        self.forget(number)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), size=st.integers(1, 60))
    def hold(self, data: st.DataObject, size: int) -> None:
        number, before = self.any(data), len(self.ended)
        self.unsent[number] = self.unsent.get(number, 0) + size
        self.open[number][0].add_unsent(size)
        assert number not in self.ended[before:]
        for gone in self.ended[before:]:
            self.forget(gone)

    @precondition(lambda self: self.unsent)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.unsent)))
        self.open[number][0].remove_unsent(self.unsent.pop(number))

    @invariant()
    def agree(self) -> None:
        assert self.connections.open == len(self.open) <= 6
        assert self.connections.unsent == sum(self.unsent.values())


@pytest.mark.thorough
def test_places_against_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(1 << 30))
    monkeypatch.setattr(trio, "current_time", lambda: float(next(ticks)))
    run_state_machine_as_test(Machine, settings=settings(max_examples=150, stateful_step_count=40))


# On real sockets


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with real_stage(tmp_path, lambda: NOON) as stage:
        yield stage


async def dialled(front: Front, source: str, stack: AsyncExitStack) -> trio.SocketStream:
    """A connection from an address of this machine."""
    made = trio.socket.socket()
    await made.bind((source, 0))
    await made.connect(("127.0.0.1", front.port))
    return await stack.enter_async_context(trio.SocketStream(made))


async def hello(stream: trio.SocketStream) -> bool:
    """Whether a request on it is answered."""
    await stream.send_all(HELLO)
    got = b""
    while b"0\r\n\r\n" not in got:
        data = await stream.receive_some()
        if not data:
            return False
        got += data
    return b"/hello" in got


async def test_one_machine_with_all_connections_shuts_out_no_other(stage: Stage) -> None:
    connections = Connections(50)
    async with real_front(stage, small_app, connections=connections) as front, AsyncExitStack() as stack:
        consumer = await front.connect()
        await consumer.subscribe("c1")
        regular = await dialled(front, "127.0.0.1", stack)
        assert await hello(regular)
        for opening in (b"", b"GET /hello HTTP/1.1\r\nX: ", b"GET /app/x HTTP/1.1\r\n"):
            for _ in range(120):
                with suppress(trio.BrokenResourceError):
                    await (await dialled(front, ATTACKER, stack)).send_all(opening)
        with trio.fail_after(HANG_TIMEOUT_S):
            for _ in range(5):
                assert await hello(await dialled(front, "127.0.0.1", stack))
            assert await hello(regular)
            await stage.emit(3)
            assert await consumer.numbers(3) == [0, 1, 2]
        assert connections.open <= 50
        assert connections.ended["idle"] >= 300
        assert connections.ended["refused"] == 0


async def test_only_clients_that_do_not_read_are_ended(stage: Stage) -> None:
    connections = Connections(500, unsent_max=1 << 22)
    async with real_front(stage, small_app, connections=connections) as front, AsyncExitStack() as stack:
        for _ in range(40):
            made = await dialled(front, ATTACKER, stack)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await made.send_all(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        with trio.fail_after(HANG_TIMEOUT_S):
            for _ in range(20):
                assert await hello(await dialled(front, "127.0.0.1", stack))
            while connections.unsent > (1 << 24):  # noqa: ASYNC110  # poll: the responses of other sockets wake no task
                await trio.sleep(0.01)  # poll: the responses of other sockets wake no task
        assert connections.ended["unread"] > 0


async def test_evicted_client_sees_the_end_of_its_connection(stage: Stage) -> None:
    ours, theirs = trio.socket.socketpair()
    stream = FrontStream(trio.SocketStream(ours), write_timeout_s=60)
    with theirs, trio.fail_after(HANG_TIMEOUT_S):
        async with trio.open_nursery() as nursery:

            async def write() -> None:
                with pytest.raises((trio.BrokenResourceError, trio.ClosedResourceError)):
                    await stream.send_all(bytes(1 << 26))

            nursery.start_soon(write)
            await trio.testing.wait_all_tasks_blocked(0.01)
            stream.abort()
    await stream.aclose()


async def test_endless_handshakes_keep_no_client_from_tls(stage: Stage, tmp_path: Path) -> None:
    files = Files(tmp_path)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(files.chain, files.key)
    limits = FrontLimits(handshakes=10, handshake_s=3_600, peek_s=3_600, requests_s=1, shutdown_s=2)
    async with (
        real_front(stage, small_app, limits, tls=server) as front,
        AsyncExitStack() as stack,
    ):
        for _ in range(30):
            await (await dialled(front, ATTACKER, stack)).send_all(b"\x16\x03\x01")
        with trio.fail_after(HANG_TIMEOUT_S):
            raw = await dialled(front, "127.0.0.1", stack)
            secured = trio.SSLStream(raw, files.trust, server_hostname="127.0.0.1")
            await secured.send_all(HELLO)
            assert bytes(await secured.receive_some()).startswith(b"HTTP/1.1 200")


async def test_connection_closed_while_waiting_for_its_turn_has_one_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a busy machine the turn of the other would end before the connection is closed.
    monkeypatch.setattr("deskwire.http.transport.fair_scheduling.TURN_MAX_S", HANG_TIMEOUT_S)
    ours, theirs = (trio.SocketStream(end) for end in trio.socket.socketpair())
    stream, turns = FrontStream(ours, write_timeout_s=60), FairScheduler()
    stream.slot, stream.scheduler = Connections(10).admit("198.51.100.7", stream.abort), turns
    await turns.acquire("somebody else", "198.51.100.8")
    async with theirs, trio.open_nursery() as nursery:

        async def read() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await stream.receive_some(100)

        await theirs.send_all(b"the rest of a large body")
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(stream.aclose)
        await trio.testing.wait_all_tasks_blocked()
        turns.release("somebody else")


async def test_waiting_connections_are_accepted_together(stage: Stage) -> None:
    """Otherwise each would wait until all other tasks have run once, for each connection before it."""
    connections = Connections()
    async with real_front(stage, small_app, connections=connections) as front:
        with ExitStack() as stack:
            for _ in range(30):  # without a checkpoint in between
                stack.enter_context(socket.create_connection(("127.0.0.1", front.port)))
            for _ in range(5):
                await trio.lowlevel.checkpoint()
            assert connections.open == 30


async def test_broken_connection_in_the_queue_does_not_stop_the_others(stage: Stage) -> None:
    connections = Connections()
    async with real_front(stage, small_app, connections=connections) as front:
        for _ in range(5):
            broken = socket.create_connection(("127.0.0.1", front.port))
            broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            broken.close()  # a reset, before it is accepted
        with trio.fail_after(HANG_TIMEOUT_S):
            stream = await front.raw()
            await stream.send_all(HELLO)
            assert bytes(await stream.receive_some()).startswith(b"HTTP/1.1 200")
