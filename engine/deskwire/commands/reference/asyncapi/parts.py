"""Channels, operations and messages as they come together, and schemas as AsyncAPI has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from deskwire.commands.reference.openapi.schemas import Schema, Schemas

_SCHEMA: Final = "#/components/schemas/"


class AsyncApiParts(Struct):
    """The parts of the document so far, each by its name.

    Args:
        schemas: all that messages may refer to.
    """

    schemas: Schemas
    channels: dict[str, Schema] = field(default_factory=dict)
    operations: dict[str, Schema] = field(default_factory=dict)
    messages: dict[str, Schema] = field(default_factory=dict)

    def channel(self, name: str, messages: Iterable[str], **told: Any) -> None:
        """Add a channel that carries these messages."""
        carried = {each: {"$ref": f"#/components/messages/{each}"} for each in messages}
        self.channels[name] = {**told, "messages": carried}

    def operation(
        self, name: str, channel: str, action: str, messages: Iterable[str], summary: str, **told: Any
    ) -> None:
        """Add what the service does with messages of a channel: it is to `send` or to `receive` them."""
        carried = [{"$ref": f"#/channels/{channel}/messages/{each}"} for each in messages]
        place = {"action": action, "channel": {"$ref": f"#/channels/{channel}"}}
        self.operations[name] = {
            **place,
            "summary": summary,
            "description": summary,
            **told,
            "messages": carried,
        }


def servers(*names: str) -> list[Schema]:
    """Return references to servers."""
    return [{"$ref": f"#/servers/{name}"} for name in names]


def security(scheme: str) -> list[Schema]:
    """Return a reference to the one scheme that is required."""
    return [{"$ref": f"#/components/securitySchemes/{scheme}"}]


def reachable(root: Any, known: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the schemas that are referred to, directly or by another one, in order of their names."""
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
    """Return schemas with the discriminator as AsyncAPI has it: the name of a property, without a mapping."""
    if isinstance(value, list):
        return [in_async(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    told = {name: in_async(each) for name, each in value.items()}
    discriminator = told.get("discriminator")
    if isinstance(discriminator, Mapping) and "propertyName" in discriminator:
        told["discriminator"] = discriminator["propertyName"]
    return told
