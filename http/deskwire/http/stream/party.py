"""Whoever is at our end of a stream connection."""

from __future__ import annotations

from typing import Protocol


class Party(Protocol):
    """Who speaks on a session."""

    async def greet(self) -> None:
        """Say the first word."""

    async def hear(self, text: str) -> None:
        """Take a text message."""
