"""Webhooks: the messages are the requests of the OpenAPI document, so that both agree."""

from __future__ import annotations

from typing import Any

from deskwire.http.description.asyncapi.parts import AsyncApiParts, security, servers
from deskwire.http.description.openapi.events import webhooks
from deskwire.http.description.openapi.schemas import Schema


def add(parts: AsyncApiParts) -> None:
    """Add the channel of webhooks."""
    names = []
    for kind, item in webhooks(parts.schemas).items():
        name = f"webhook.{kind}"
        parts.messages[name] = _message(kind, item["post"])
        names.append(name)
    parts.channel(
        "webhook",
        names,
        address=None,
        title="Webhook",
        description="Requests to the URL of an endpoint, which `POST /v3/s2s/webhooks` creates. A receiver has 5 seconds to answer with a 2xx "
        "status; the delivery is retried after any other answer and after a timeout.",
        servers=servers("receiver"),
    )
    parts.operation(
        "sendWebhook",
        "webhook",
        "send",
        names,
        "Deliver an event to an endpoint.",
        security=security("signature"),
        bindings={"http": {"method": "POST", "bindingVersion": "0.3.0"}},
    )


def _message(kind: str, post: Schema) -> Schema:
    body = post["requestBody"]["content"]["application/json"]
    headers = {each["name"]: _header(each) for each in post["parameters"]}
    sent: dict[str, Any] = {each["name"]: each["example"] for each in post["parameters"]}
    return {
        "name": kind,
        "title": kind,
        "summary": post["summary"],
        "contentType": "application/json",
        "headers": {"type": "object", "properties": headers, "required": [*headers]},
        "payload": body["schema"],
        "examples": [{"name": "delivery", "headers": sent, "payload": body["example"]}],
    }


def _header(parameter: Schema) -> Schema:
    return {
        "description": parameter["description"],
        **parameter["schema"],
        "examples": [parameter["example"]],
    }
