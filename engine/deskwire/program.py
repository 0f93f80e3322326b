"""The whole program in one nursery tree: storage, log, actors, deliveries and stream, HTTP front.

`run` builds it from the outside in and takes it down from the inside out; every step of the way down has
a bound of its own.
"""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Final

import structlog
import trio

from deskwire.config import Config
from deskwire.engine.clock import wall_clock
from deskwire.engine.credentials import Passwords, Tokens
from deskwire.engine.directory import Directory
from deskwire.engine.erasure import Erasures
from deskwire.engine.log import EventLog
from deskwire.http.app import make_app
from deskwire.http.services import Limits, Services, Webhooks
from deskwire.provision import Demo, SecretError, installation_secret, plan_demo, provision_demo
from deskwire.storage.database import DataDirectoryError
from deskwire.storage.store import SqliteStore, open_store
from deskwire.storage.writer import Commit
from deskwire.welcome import running, welcome

log: Final = structlog.get_logger(__name__)
