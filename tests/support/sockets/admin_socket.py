"""The operator at the socket of a running service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from deskwire.commands.admin.socket import ask


class HasDirectory(Protocol):
    """A service with its data directory."""

    @property
    def directory(self) -> Path:
        """Where its data is."""


async def operate(service: HasDirectory, operation: str, /, **arguments: Any) -> dict[str, Any]:
    """The answer to an order, which is not refused."""
    said = await ask(service.directory, operation, json.dumps(arguments).encode())
    assert said is not None, "no server listens"
    assert "answer" in said, said
    answer: dict[str, Any] = said["answer"]
    return answer
