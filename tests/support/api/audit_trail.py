"""The audit trail of a running service, in the views of its owner and its operator."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.api.service import Service
from tests.support.api.staff import organisation_of
from tests.support.sockets.admin_socket import operate

Record = dict[str, Any]


async def trail(service: Service, client: httpx.AsyncClient | None = None, **params: str) -> list[Record]:
    """Return the records that the demo's owner sees, newest first."""
    path = f"/organisations/{await organisation_of(service)}/audit"
    answer = await (client or service.dashboard).get(path, params={"limit": "200", **params})
    assert answer.status_code == 200, answer.text
    items: list[Record] = answer.json()["items"]
    return items


async def whole(service: Service, **arguments: Any) -> list[Record]:
    """Return the records that the operator sees, oldest first."""
    return list((await operate(service, "audit.list", after=0, limit=500, **arguments))["items"])
