"""Machine credentials of a running service, and clients that use them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from deskwire.engine.accounts.machines import EVERY_PERMISSION
from tests.support.api.openapi_check import caller
from tests.support.api.service import Service
from tests.support.log_leaks import plant


def credentials_of(service: Service, project: str | None = None) -> str:
    """Return the path of a project's credentials, by default the demo's."""
    return f"/projects/{project or service.demo['projectId']}/credentials"


async def make(
    service: Service, permissions: Iterable[str] = EVERY_PERMISSION, project: str | None = None, **fields: Any
) -> dict[str, Any]:
    """Create a credential as the demo's owner; return it with its secret."""
    body = {"name": "CRM", "permissions": sorted(permissions), **fields}
    answer = await service.dashboard.post(credentials_of(service, project), json=body)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    plant(made["secret"])
    return made


@asynccontextmanager
async def showing(service: Service, secret: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client that sends this secret, and names no project."""
    async with caller(f"{service.url}/v3", {"Authorization": f"Bearer {secret}"}) as http:
        yield http
