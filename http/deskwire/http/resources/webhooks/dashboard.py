"""Webhook routes for users: those of server keys, by permission (ADR 10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from deskwire.engine.core.values import replace
from deskwire.http.api.routing import Route, Routes, Tag, dashboard, fresh
from deskwire.http.resources.stream import consumers
from deskwire.http.resources.webhooks import deliveries, endpoints

routes = Routes(
    Tag("Webhooks for users", "Manage webhooks, deliveries and stream consumers, signed in as a user."),
    dashboard("webhooks.manage"),
)
_S2S: Final = "/s2s/"
# Operation ids of the server key routes that users have too, with their ids for users.
_NAMES: Final[Mapping[str, str]] = {
    "createEndpoint": "createWebhook",
    "listEndpoints": "listWebhooks",
    "getEndpoint": "getWebhook",
    "changeEndpoint": "changeWebhook",
    "rotateSecret": "rotateWebhookSecret",
    "deleteEndpoint": "deleteWebhook",
    "listDeliveries": "listWebhookDeliveries",
    "getDelivery": "getWebhookDelivery",
    "redeliver": "redeliverWebhook",
    "recover": "recoverWebhook",
    "testEndpoint": "testWebhook",
    "replayConversation": "replayToWebhook",
    "getEndpointFigures": "getWebhookFigures",
    "listConsumers": "listStreamConsumers",
    "endConsumer": "endStreamConsumer",
}
# They show a secret, or decide where events are sent.
_FRESH: Final = frozenset({"createWebhook", "changeWebhook", "rotateWebhookSecret"})


def _for_users(table: Iterable[Route]) -> Iterable[Route]:
    """Yield the routes for users, with their own path, operation id, tag and access."""
    assert routes.access is not None
    for route in table:
        if name := _NAMES.get(route.operation_id):
            path = route.path.replace(_S2S, "/", 1)
            access = fresh(routes.access) if name in _FRESH else routes.access
            yield replace(route, path=path, operation_id=name, tag=routes.tag, access=access)


for _module in (endpoints, deliveries, consumers):
    routes.table.extend(_for_users(_module.routes.table))
