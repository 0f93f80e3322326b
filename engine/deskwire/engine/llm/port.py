"""The port of language models; `deskwire.engine.llm.chat` implements it over HTTP (decisions 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class ModelError(Exception):
    """A failed call of a model: it could not be asked, or its answer is of another form; the text says what."""


class ChatModel(Protocol):
    """A language model that answers in JSON."""

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the JSON object that the model answers `messages` (`{role, content}`) with, in one attempt.

        Args:
            schema: the JSON Schema that the answer is to keep; it may not.

        Raises ModelError.
        """
