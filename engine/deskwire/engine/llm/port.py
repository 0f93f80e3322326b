"""What the engine needs of a language model; `deskwire.engine.llm.chat` has it over HTTP (decisions 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class ModelError(Exception):
    """The model could not be asked, or answered something else than it was asked for; the text says what."""


class ChatModel(Protocol):
    """A language model that answers in JSON."""

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The JSON object that the model answers `messages` (`{role, content}`) with, in one attempt.

        Args:
            schema: the JSON Schema that the answer is to keep; it may not.

        Raises ModelError.
        """
