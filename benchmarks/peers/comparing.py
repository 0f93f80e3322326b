"""Deskwire beside systems that do the same job, on one core each with all its processes and its database."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from tests.support.postgres import PostgresServer, own_server

from benchmarks import processes
from benchmarks.generator import carried_out
from benchmarks.load import run
from benchmarks.peers import process_tree, rounds, tables
from benchmarks.peers.deskwire_peer import Deskwire
from benchmarks.peers.django_helpdesk import DjangoHelpdesk
from benchmarks.peers.peer import APPEND, OPERATIONS, READ, NotInstalled, Peer, Running
from benchmarks.peers.request_tracker import RequestTracker
from benchmarks.peers.rounds import Rounds
from benchmarks.peers.synapse import Synapse
from benchmarks.peers.tables import State
from benchmarks.report import Section
from benchmarks.scale import Scale

_SLOW_FACTOR: Final = 2.5
"""By which rounds of slow peers are longer."""
_NOTIFIED_PER_S: Final = 3.0
_SENDERS: Final = 4
"""Connections of the messages whose subscribers are timed."""
_WARMING: Final = 12
_WAIT_S: Final = 30.0
_LOOK_S: Final = 0.1


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Measure all peers that can be installed, on SQLite and then on PostgreSQL."""
    kept = Path(scale.kept or directory)
    packages = kept / "peers-packages"
    compared = list[tables.Compared]()
    absent = dict[str, str]()
    with ExitStack() as stack:
        plain = directory / "peers-sqlite"
        plain.mkdir()
        peers: list[Peer] = [Deskwire(plain / "deskwire"), DjangoHelpdesk(plain / "helpdesk", packages)]
        compared.append(_compared(scale, peers, absent))
        shared = directory / "peers-postgres"
        shared.mkdir()
        peers = [
            Deskwire(shared / "deskwire", _postgres(stack)),
            DjangoHelpdesk(shared / "helpdesk", packages, _postgres(stack)),
            RequestTracker(shared / "rt", _postgres(stack)),
            Synapse(shared / "synapse", kept / "synapse-packages", _postgres(stack)),
        ]
        compared.append(_compared(scale, peers, absent))
    return tables.sections(scale, compared, absent)


def _postgres(stack: ExitStack) -> PostgresServer:
    """Start a PostgreSQL with its own defaults of durability, on the servers' core."""
    place = stack.enter_context(
        tempfile.TemporaryDirectory(prefix="deskwire-pg-", ignore_cleanup_errors=True)
    )
    with processes.on_core(processes.SERVER):
        return stack.enter_context(own_server(Path(place), settings={"shared_buffers": "128MB"}))


def _compared(scale: Scale, peers: Sequence[Peer], absent: dict[str, str]) -> tables.Compared:
    """Measure these peers in turn; the first is Deskwire."""
    present = list[Peer]()
    for peer in peers:
        try:
            peer.prepare(scale.peer_conversations)
        except NotInstalled as problem:
            absent[peer.name] = str(problem)
        else:
            present.append(peer)
    found = {peer.name: State() for peer in present}
    for number in range(scale.rounds):
        for peer in present[:: 1 if number % 2 == 0 else -1]:
            found[peer.name].starts.append(_start_s(peer))
    for peer in present:
        found[peer.name].ages = _ages(scale, peer)
    taken = _loaded(scale, present, found)
    return tables.Compared({peer.name: peer.facts for peer in present}, taken, found)


def _start_s(peer: Peer) -> float:
    """Return the seconds from the start of the service's process until it has answered a read."""
    began = time.perf_counter()
    with peer.running() as running:
        _answered(running)
        return time.perf_counter() - began


def _answered(running: Running) -> None:
    job = running.job(READ, connections=1, for_s=0.0, count=1)
    if failures := run(job).failures:
        raise RuntimeError(f"the first read is refused: {failures[0]}")


def _warm(running: Running) -> None:
    """Append some messages at once, so that each process of the service has loaded its code."""
    job = running.job(APPEND, connections=_WARMING, for_s=0.0, count=3 * _WARMING)
    if failures := carried_out(job).failures:
        raise RuntimeError(f"a message is refused: {failures[0]}")


def _loaded(
    scale: Scale, peers: Sequence[Peer], found: dict[str, State]
) -> dict[tuple[str, int], dict[str, Rounds]]:
    """Return the rounds of each operation and number of connections, by peer."""
    taken = dict[tuple[str, int], dict[str, Rounds]]()
    with ExitStack() as stack:
        running = {peer.name: stack.enter_context(peer.running()) for peer in peers}
        for name, each in running.items():
            _answered(each)
            process_tree.wait_until_quiet(each.service)  # another of its processes may still load its code
            found[name].idle_mb = _memory_mb(each)
            _warm(each)
        all_processes = [each for one in running.values() for each in (*one.service, *one.database)]
        for operation in OPERATIONS:
            for connections in scale.connections:
                jobs = {
                    peer.name: running[peer.name].job(
                        operation,
                        connections=connections,
                        for_s=scale.peer_s * (_SLOW_FACTOR if peer.slow else 1),
                    )
                    for peer in peers
                }
                figures = {
                    name: partial(rounds.take, running[name], job, beside=all_processes)
                    for name, job in jobs.items()
                }
                taken[operation, connections] = rounds.in_turn(scale.rounds, figures)
        for name, each in running.items():
            found[name].used_mb = _memory_mb(each)
    return taken


def _memory_mb(running: Running) -> tuple[float, float]:
    return process_tree.pss_mb(running.service), process_tree.pss_mb(running.database)


def _ages(scale: Scale, peer: Peer) -> dict[str, list[float]]:
    """Return the ages (ms) of messages at each kind of subscriber, sorted; each has the server to itself."""
    found = dict[str, list[float]]()
    with peer.running(notify=True) as running:
        _warm(running)
        for way, subscribed in running.subscribers.items():
            with subscribed() as ages:
                found[way] = sorted(_aged(scale, running, way, ages))
    return found


def _aged(scale: Scale, running: Running, way: str, ages: Callable[[], list[float]]) -> list[float]:
    """Append messages at a small rate; return the ages of all. Raises RuntimeError if one does not come."""
    count = scale.peer_messages
    job = running.job(APPEND, connections=_SENDERS, for_s=0.0, count=count, rate=_NOTIFIED_PER_S)
    ages()  # of the warm-up, and not counted
    if failures := carried_out(job).failures:
        raise RuntimeError(f"a message is refused: {failures[0]}")
    found, end = ages(), time.monotonic() + _WAIT_S
    while len(found) < count:
        if time.monotonic() > end:
            raise RuntimeError(f"{len(found)} of {count} messages came by {way} within {_WAIT_S:g} s")
        time.sleep(_LOOK_S)
        found += ages()
    return found
