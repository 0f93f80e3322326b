"""The service accepts null in the bodies of patches exactly where the description allows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from deskwire.http.api.routing import Route
from deskwire.http.app import ROUTES
from deskwire.http.schemas.base import public_name
from tests.api.accounts.test_tenants import address, everything
from tests.api.events.test_channels_agree import receiving
from tests.support.api.openapi_check import described
from tests.support.api.service import Service

PATCHES: Final = [
    route
    for route in ROUTES
    if route.method == "PATCH" and route.body is not None and route.access.kind != "customer"
]


def nullable(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema accepts null."""
    return schema == {} or any(each.get("type") == "null" for each in schema.get("anyOf", ()))


def fields_of(route: Route) -> dict[str, Any]:
    """Return the described fields of a route's body."""
    assert route.body is not None
    fields: dict[str, Any] = described()["components"]["schemas"][public_name(route.body)]["properties"]
    return fields


async def null_is_taken(service: Service, route: Route, path: str, field: str) -> bool:
    """Send null for one field; return whether the service accepts it."""
    client = service.http if route.access.kind == "server_key" else service.dashboard
    answer = await client.request("PATCH", path, json={field: None})
    refused = answer.json().get("errors", []) if answer.status_code == 422 else []
    assert answer.status_code in (200, 422), f"{route.operation_id}: {answer.text}"
    return not any(each["pointer"] == f"/{field}" for each in refused)


@pytest.mark.parametrize("route", PATCHES, ids=lambda route: route.operation_id)
async def test_field_of_a_patch_accepts_null_as_described(service: Service, route: Route) -> None:
    async with receiving() as receiver:
        made = await everything(service, receiver.url)
        if "/contacts/" in route.path:
            made["user_id"] = made["user:user_id"]
        path = address(route, made).removeprefix("/v3")
        said = {field: nullable(schema) for field, schema in fields_of(route).items()}
        done = {field: await null_is_taken(service, route, path, field) for field in said}
    assert done == said, (
        f"{route.operation_id}: name the fields that null clears in `nulls(...)` of its `further`, and no others"
    )
