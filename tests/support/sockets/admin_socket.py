"""The operator of a running service, at its socket if it has one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from deskwire.commands.admin.reach import _reach
from deskwire.commands.admin.socket import ask
from deskwire.config.settings import Config
from tests.support.stores import chosen, settings_of


class HasDirectory(Protocol):
    """A service with its data directory."""

    @property
    def directory(self) -> Path:
        """Where its data is."""


async def operate(service: HasDirectory, operation: str, /, **arguments: Any) -> dict[str, Any]:
    """The answer to an order, which is not refused."""
    order = json.dumps(arguments).encode()
    if chosen() == "postgres":  # the command itself carries it out, beside the nodes
        config = Config(data_dir=service.directory, **settings_of(service.directory))
        said: dict[str, Any] | None = await _reach(config, operation, order, False)
    else:
        said = await ask(service.directory, operation, order)
    assert said is not None, "no server listens"
    assert "answer" in said, said
    answer: dict[str, Any] = said["answer"]
    return answer
