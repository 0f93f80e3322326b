"""The memory of the server: after its start, with many conversations alive, and for each thing it holds."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

import trustme

from benchmarks import processes
from benchmarks.crowd import Crowd
from benchmarks.fanning import conversation_id
from benchmarks.filling import fill_directory
from benchmarks.report import Cell, Section
from benchmarks.scale import Scale
from benchmarks.service import Server, deskwire
from deskwire.engine.core.secret import derived_key
from deskwire.program.secret_file import installation_secrets

_ALLOWED_MB: Final = 150.0
_STAY: Final = {"actor_idle_s": "3600", "idle_connection_s": "3600", "stream_unsubscribed_s": "3600"}
"""Settings that prevent evictions during the measurement."""
_WARM: Final = 2_000
_FIRST: Final = 50

_Row = tuple[Cell, ...]


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Resident memory of real server processes."""
    rows: list[_Row] = []
    for live in scale.live:
        with deskwire(directory / f"created-{live}", **_STAY) as server:
            rows += _created(server, live)
    for live in scale.live:
        stored = directory / f"stored-{live}"
        ids = fill_directory(stored, live, live)
        rows.append(_held(stored, ids, partial(_live, ids=ids)))
    # A process for each, because a second measurement would reuse memory that the first one has freed.
    rows.append(_held(stored, ids, partial(_connections, count=scale.idle_connections)))
    rows.append(_held_with_tls(stored, scale.idle_connections))
    rows.append(_held(stored, ids, partial(_websockets, directory=stored, count=scale.idle_websockets)))
    note = (
        f"Allowed with 2,000 conversations alive: {_ALLOWED_MB:g} MB in all. 1 MB is 10^6 bytes. Creating a conversation "
        "also fills caches and the log's window in memory; the share of an actor is taken without those."
    )
    return [Section("memory", "Resident memory of the server", ("what", "MB in all", "KB each"), rows, note)]


def _created(server: Server, count: int) -> Sequence[_Row]:
    start = processes.resident_mb(server.process)
    server.create(count)
    after = processes.resident_mb(server.process)
    return [
        ("after its start", start, None),
        (f"{count:,} conversations created and alive", after, None),
    ]


def _held(directory: Path, ids: list[str], hold: Callable[[Server], _Row], **settings: str) -> _Row:
    """Return what `hold` measures in a process that has served requests before."""
    with deskwire(directory, **_STAY, **settings) as server:
        server.wake(ids[:1] * _WARM)
        return hold(server)


def _held_with_tls(directory: Path, count: int) -> _Row:
    """Measure the same connections with TLS, terminated by the server itself."""
    issuer = trustme.CA()
    files = {name: str(directory / f"{name}.pem") for name in ("tls_cert", "tls_key")}
    issued = issuer.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(files["tls_key"])
    for part in issued.cert_chain_pems:
        part.write_to_path(files["tls_cert"], append=True)
    authority = ssl.create_default_context()
    issuer.configure_trust(authority)
    with deskwire(directory, **_STAY, **files) as server:
        _connections(server, _FIRST, authority)
        return _connections(server, count, authority)


def _live(server: Server, ids: list[str]) -> _Row:
    """Load stored conversations by a command that changes nothing, so that only their actors are added."""
    before = processes.resident_mb(server.process)
    server.wake(ids)
    return _share(f"a live conversation, of {len(ids):,}", server, before, len(ids))


def _connections(server: Server, count: int, authority: ssl.SSLContext | None = None) -> _Row:
    """Hold connections that have had one response each."""
    before = processes.resident_mb(server.process)
    what = "an idle kept connection" if authority is None else "an idle kept connection with TLS"
    with ExitStack() as stack:
        for _ in range(count):
            kept = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            if authority is not None:
                kept = stack.enter_context(authority.wrap_socket(kept, server_hostname="127.0.0.1"))
            kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if b" 200 " not in kept.recv(4_096):
                raise RuntimeError("the server does not say that it lives")
        return _share(f"{what}, of {count:,}", server, before, count)


def _websockets(server: Server, directory: Path, count: int) -> _Row:
    """Hold websockets of another process, each subscribed to the channel of a conversation."""
    stream_key, key_id = server.stream_key(), server.key_id()
    token_key = derived_key(installation_secrets(directory, None).current, "stream").hex()
    channels = [f"private-conversation-{conversation_id(number)}" for number in range(count + _FIRST)]
    before = 0.0
    with ExitStack() as stack:
        for chosen in (
            channels[:_FIRST],
            channels[_FIRST:],
        ):  # the first ones fill caches that are filled once
            before = processes.resident_mb(server.process)
            crowd = processes.start("benchmarks.crowd", core=processes.LOAD)
            stack.callback(processes.stop, crowd)
            path = f"/app/{stream_key}"
            job = Crowd(server.port, path, chosen, server.project, stream_key, key_id, token_key)
            if processes.ask(crowd, job.encode()) != "in place":
                raise RuntimeError("the consumers are not in place")
        return _share(f"an idle subscribed websocket, of {count:,}", server, before, count)


def _share(what: str, server: Server, before: float, count: int) -> _Row:
    after = processes.resident_mb(server.process)
    return what, after, (after - before) * 1000 / count
