"""The operator of a running service, at its control socket if it has one."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import trio

from deskwire.commands.admin.client import send_command
from deskwire.commands.admin.invocation import open_reader
from deskwire.commands.admin.local_backend import run_on_installation
from deskwire.commands.admin.read_queries import READ_QUERIES
from deskwire.config.config import Config
from deskwire.engine.core.clock import wall_clock
from tests.support.stores import chosen, settings_of


class HasDirectory(Protocol):
    """A service with a data directory."""

    @property
    def directory(self) -> Path:
        """The data directory."""


async def operate(service: HasDirectory, operation: str, /, **arguments: Any) -> dict[str, Any]:
    """Run an operator's command, which must succeed, and return its answer."""
    order = json.dumps(arguments).encode()
    config = Config(data_dir=service.directory, **settings_of(service.directory))
    if operation in READ_QUERIES:  # reads, which the command does without the server
        return await trio.to_thread.run_sync(partial(_looked, config, operation, arguments))
    if chosen() == "postgres":  # the command itself carries it out, without the nodes
        said: dict[str, Any] | None = await run_on_installation(config, operation, order, False)
    else:
        said = await trio.to_thread.run_sync(send_command, service.directory, operation, order)
    assert said is not None, "no server listens"
    assert "answer" in said, said
    answer: dict[str, Any] = said["answer"]
    return answer


def _looked(config: Config, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
    with open_reader(config) as reader:
        return dict(READ_QUERIES[operation](reader, wall_clock(), **arguments))
