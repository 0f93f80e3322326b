"""The whole program in one nursery tree: storage, log, actors, deliveries and stream, HTTP front.

`serve` builds it from the outside in and takes it down from the inside out; every step of the way down
has a bound of its own. `run` adds what belongs to a process: signals, the words on the terminal, the
exit status.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

import structlog
import trio
from hypercorn.config import Config as HypercornConfig

from deskwire.config import Config
from deskwire.engine.clock import wall_clock
from deskwire.engine.credentials import Passwords, Tokens
from deskwire.engine.delivery.address import Policy
from deskwire.engine.delivery.couriers import Couriers
from deskwire.engine.delivery.resolver import SystemResolver
from deskwire.engine.delivery.target import check_url
from deskwire.engine.directory import Directory
from deskwire.engine.erasure import Erasures
from deskwire.engine.log import EventLog
from deskwire.engine.retention import run_retention
from deskwire.engine.sealing import Sealing, derived_key
from deskwire.engine.stream.hub import Hub
from deskwire.http.app import make_app
from deskwire.http.front import FrontLimits, serve_front
from deskwire.http.services import Limits, Services, Webhooks
from deskwire.http.socket import RealtimeStream
from deskwire.provision import Demo, SecretError, installation_secret, plan_demo, provision_demo
from deskwire.storage.database import DataDirectoryError
from deskwire.storage.store import SqliteStore, open_store
from deskwire.storage.writer import Commit
from deskwire.welcome import running, welcome

log: Final = structlog.get_logger(__name__)

_STREAM_SHARE: Final = 0.5
"""Part of the stop's bound that requests under way may use; the rest is the stream's goodbye."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A service that is up.

    Args:
        url: what clients reach it by.
        demo: the demo's credentials if this start has made it.
        stop: begins an orderly stop; `serve` returns when that is done.
    """

    url: str
    demo: Demo | None
    _stop: trio.Event

    def stop(self) -> None:
        """Begin an orderly stop."""
        self._stop.set()


async def run(config: Config) -> int:
    """Serve until SIGTERM or SIGINT; the exit status, 0 after an orderly stop."""
    try:
        async with trio.open_nursery() as nursery:
            serving: Serving = await nursery.start(serve, config)
            print(_greeting(serving, config.data_dir), flush=True)
            with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                nursery.start_soon(_stop_at_signal, signals, serving, nursery)
    except* (DataDirectoryError, SecretError, OSError) as group:
        for error in _leaves(group):
            print(f"Deskwire can't start: {error}", file=sys.stderr)
        return 1
    return 0
