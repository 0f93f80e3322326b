"""Several nodes on one PostgreSQL: the cost compared with SQLite, the added latency, and the limit."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tests.support.postgres import PostgresServer, own_server

from benchmarks import alternating, answering, failing_over, following, primary, sharing, spreading
from benchmarks.report import Section
from benchmarks.scale import Scale
from deskwire.storage.postgres.migrations.apply import migrate


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Run one measurement after the other, each on its own database."""
    for name in ("sharing", "answering", "spreading", "pauses"):
        (directory / name).mkdir()
    with _server() as server:
        asked: dict[str, Any] = {"server": server.pid, "scale": asdict(scale)}
        sections = sharing.measure({**asked, "url": _database(server, "shared")}, directory / "sharing")
        ((version,),) = server.run("SHOW server_version")
        sections[0] = replace(sections[0], note=f"{sections[0].note} PostgreSQL {version}, synced.")
        sections.append(alternating.measure({**asked, "url": _database(server, "alternating")}))
        sections.append(answering.measure(scale, directory / "answering", _database(server, "answering")))
        spread_url = _database(server, "spreading")
        sections += spreading.measure(scale, directory / "spreading", spread_url, server.pid)
        sections.append(following.measure(scale, _database(server, "following")))
        sections.append(primary.measure({**asked, "url": server.url()}, scale.in_flight, scale.rounds))
    sections.append(failing_over.measure(scale, directory / "pauses"))
    return sections


@contextmanager
def _server() -> Iterator[PostgresServer]:
    """Run a server that syncs its commits."""
    with (
        tempfile.TemporaryDirectory(prefix="deskwire-pg-", ignore_cleanup_errors=True) as place,
        own_server(Path(place), settings={"shared_buffers": "256MB"}) as server,
    ):
        yield server


def _database(server: PostgresServer, name: str) -> str:
    """Return the URL of a fresh, migrated database."""
    server.run(f"CREATE DATABASE {name}")
    migrate(server.url(name))
    return server.url(name)
