"""Collects channels, operations and messages, and converts schemas for AsyncAPI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from deskwire.http.description.openapi.schemas import Schema, Schemas

_SCHEMA: Final = "#/components/schemas/"


class AsyncApiParts(Struct):
    """The collected parts of the document, by name.

    Args:
        schemas: all schemas that messages may reference.
    """

    schemas: Schemas
    channels: dict[str, Schema] = field(default_factory=dict)
    operations: dict[str, Schema] = field(default_factory=dict)
    messages: dict[str, Schema] = field(default_factory=dict)

    def channel(self, name: str, messages: Iterable[str], **fields: Any) -> None:
        """Add a channel that carries these messages."""
        carried = {each: {"$ref": f"#/components/messages/{each}"} for each in messages}
        self.channels[name] = {**fields, "messages": carried}

    def operation(
        self, name: str, channel: str, action: str, messages: Iterable[str], summary: str, **fields: Any
    ) -> None:
        """Add an operation of the service on a channel: to `send` or to `receive` messages."""
        carried = [{"$ref": f"#/channels/{channel}/messages/{each}"} for each in messages]
        place = {"action": action, "channel": {"$ref": f"#/channels/{channel}"}}
        self.operations[name] = {
            **place,
            "summary": summary,
            "description": summary,
            **fields,
            "messages": carried,
        }


def servers(*names: str) -> list[Schema]:
    """Return references to servers."""
    return [{"$ref": f"#/servers/{name}"} for name in names]


def security(scheme: str) -> list[Schema]:
    """Return a reference to the one required scheme."""
    return [{"$ref": f"#/components/securitySchemes/{scheme}"}]


def reachable(root: Any, known: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the directly or indirectly referenced schemas, by name."""
    found: set[str] = set()
    ahead = list(_references(root))
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead.extend(_references(known[name]))
    return {name: known[name] for name in sorted(found)}


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith(_SCHEMA):
            yield reference.removeprefix(_SCHEMA)
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def in_async(value: Any) -> Any:
    """Return schemas with AsyncAPI's discriminator: a property's name, without a mapping."""
    if isinstance(value, list):
        return [in_async(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    fields = {name: in_async(each) for name, each in value.items()}
    discriminator = fields.get("discriminator")
    if isinstance(discriminator, Mapping) and "propertyName" in discriminator:
        fields["discriminator"] = discriminator["propertyName"]
    return fields
