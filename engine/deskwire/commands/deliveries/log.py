"""The delivery log, read and acted on through the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deskwire.commands.api_client.service import Service

PAGE: Final = 200  # decisions 1: the largest
_RECOVER_S: Final = 60.0
"""The time that a recovery may take; it makes thousands of deliveries a second."""


async def list_deliveries(
    service: Service, endpoint: str | None, filters: Mapping[str, str], limit: int
) -> list[dict[str, Any]]:
    """Return the newest deliveries of one endpoint, or of all of the project. Raises ServiceError."""
    if endpoint is None:
        endpoints = [endpoint["id"] for endpoint in (await service.fetch("/s2s/webhooks"))["items"]]
    else:
        endpoints = [endpoint]
    deliveries: list[dict[str, Any]] = []
    for known in endpoints:
        deliveries += await _newest(service, known, filters, limit)
    return sorted(deliveries, key=lambda delivery: (delivery["createdAt"], delivery["id"]), reverse=True)[
        :limit
    ]


async def _newest(
    service: Service, endpoint: str, filters: Mapping[str, str], limit: int
) -> list[dict[str, Any]]:
    deliveries: list[dict[str, Any]] = []
    cursor: str | None = None
    while len(deliveries) < limit:
        params = {**filters, "limit": str(min(PAGE, limit - len(deliveries)))}
        if cursor is not None:
            params["cursor"] = cursor
        page = await service.fetch(f"/s2s/webhooks/{endpoint}/deliveries", params)
        deliveries += page["items"]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    return deliveries


async def get_delivery(service: Service, delivery: str) -> dict[str, Any]:
    """Return one delivery with its attempts. Raises ServiceError."""
    return dict(await service.fetch(f"/s2s/deliveries/{delivery}"))


async def redeliver(service: Service, delivery: str) -> dict[str, Any]:
    """Send one again; the new delivery. Raises ServiceError."""
    return dict(await service.post(f"/s2s/deliveries/{delivery}/redeliver"))


async def recover(service: Service, endpoint: str, since: str, dry_run: bool) -> dict[str, Any]:
    """Send again all that was dropped or skipped since a time or event; the counts. Raises ServiceError."""
    body = {"since": since, "dryRun": dry_run}
    return dict(await service.post(f"/s2s/webhooks/{endpoint}/recover", body, _RECOVER_S))
