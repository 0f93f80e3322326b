"""The parts that agents' and customers' streams of server-sent events share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from deskwire.http.description.asyncapi.parts import AsyncApiParts
from deskwire.http.description.openapi.open_schemas import EXTENSIBLE
from deskwire.http.description.openapi.schemas import Schema

_START: Final[Mapping[str, Schema]] = {
    "resumedAfter": {"type": ["string", "null"]},
    "gap": {"type": "boolean"},
    "at": {"type": ["string", "null"]},
    "heartbeatS": {"type": "integer"},
}
_START_EXAMPLE: Final = {
    "resumedAfter": None,
    "gap": False,
    "at": "evt_01KZ00000000000000000000E1",
    "heartbeatS": 15,
}


class SseMessages:
    """The messages of one kind of stream.

    Args:
        kind: the prefix of their names.

    Attributes:
        names: the names of the messages, in order.
    """

    def __init__(self, parts: AsyncApiParts, kind: str) -> None:
        self.names: Final[list[str]] = []
        self._parts = parts
        self._kind = kind

    def add(self, event: str, meaning: str, payload: Schema, example: Any) -> None:
        """Add a message."""
        name = f"{self._kind}.{event}"
        self._parts.messages[name] = {
            "name": event,
            "title": event,
            "summary": meaning,
            "contentType": "application/json",
            "payload": payload,
            "examples": [{"name": "data", "payload": example}],
        }
        self.names.append(name)

    def add_hello(self, meaning: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Add `hello`, with fields before and after those of the start: schemas with an example under `examples`."""
        fields = {**before, **_START, **after}
        shown = {**_examples(before), **_START_EXAMPLE, **_examples(after)}
        self.add("hello", meaning, _object(fields), shown)

    def add_passing(self, meaning: str, example: Mapping[str, Any]) -> None:
        """Add `passing`."""
        self.add(
            "passing", meaning, _object({"type": {"type": "string"}, "data": {"type": "object"}}), example
        )

    def add_bye(self, reasons: Sequence[str]) -> None:
        """Add `bye`."""
        reason = {"type": "string", EXTENSIBLE: [*reasons]}
        self.add(
            "bye",
            "The last event: the reason for the end of the stream, and when to reconnect.",
            _object({"reason": reason, "retryAfterMs": {"type": "integer"}}),
            {"reason": "shutdown", "retryAfterMs": 500},
        )


def _object(fields: Mapping[str, Schema]) -> Schema:
    shown = {
        name: {key: each for key, each in field.items() if key != "examples"}
        for name, field in fields.items()
    }
    return {"type": "object", "properties": shown, "required": [*fields]}


def _examples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: field["examples"][0] for name, field in fields.items()}
