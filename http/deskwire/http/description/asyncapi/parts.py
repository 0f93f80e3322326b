"""Collects channels, operations and messages, and converts schemas for AsyncAPI."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from deskwire.http.description.openapi.references import PREFIX
from deskwire.http.description.openapi.schemas import Schema, Schemas


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


def named_objects(value: Any, name: str, found: dict[str, Schema]) -> Any:
    """Return a value whose inline object schemas are references to `found`, where they get a name.

    Generators call an inline schema AnonymousSchema_17.

    Args:
        name: of the object, and the start of the names of those in it.
    """
    if isinstance(value, list):
        return [named_objects(each, name, found) for each in value]
    if not isinstance(value, Mapping):
        return value
    result = {
        key: each if key == "properties" else named_objects(each, _part_name(name, key), found)
        for key, each in value.items()
    }
    if "properties" not in result:
        return result
    result["properties"] = {
        key: named_objects(each, name + capitalized(key), found) for key, each in value["properties"].items()
    }
    found[name] = {"title": name, **result}
    return {"$ref": f"{PREFIX}{name}"}


def named_message(message: Schema, name: str, found: dict[str, Schema]) -> Schema:
    """Return a message whose payload and headers are references; `found` receives their inline objects."""
    schemas = {
        "payload": named_objects(message["payload"], f"{name}Payload", found),
    }
    if "headers" in message:
        schemas["headers"] = named_objects(message["headers"], f"{name}Headers", found)
    return {**message, **schemas}


def _part_name(name: str, keyword: str) -> str:
    return f"{name}Item" if keyword == "items" else name


def capitalized(text: str) -> str:
    """Return a name of several words, such as `sent.pusher:ping`, as `SentPusherPing`."""
    return "".join(each[:1].upper() + each[1:] for each in re.split(r"[^A-Za-z0-9]+", text))


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
