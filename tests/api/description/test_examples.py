"""The examples of request bodies, sent to a service, which may refuse only their references to unknown objects."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from deskwire.http.app import ROUTES
from deskwire.http.description.openapi.samples import BODIES
from deskwire.http.schemas.base import public_name
from tests.api.accounts.test_tenants import address, everything
from tests.api.events.test_channels_agree import receiving
from tests.support.api.service import running

OF_OTHERS: Final = frozenset({"unknown", "url_not_signed", "url_host_unknown"})
"""Codes of problems with an example's references to other objects."""


async def test_every_example_body_is_accepted_except_for_its_references(tmp_path: Path) -> None:
    refused, taken = {}, 0
    async with receiving() as receiver, running(tmp_path) as service:
        objects = await everything(service, receiver.url)
        for _ in range(20):
            said = await service.say(
                {"id": objects["conversation_id"]}, "My card is 4111 1111 1111 1111, please"
            )
        objects["message_id"] = said["id"]
        for route in ROUTES:
            if route.body is None or not route.json_only or not (body := BODIES.get(public_name(route.body))):
                continue
            client = service.http if route.access.kind in ("server_key", "either") else service.dashboard
            path = address(route, objects).removeprefix("/v3")
            answer = await client.request(route.method, path, json=body)
            taken += answer.status_code in (200, 204)
            if answer.status_code in (400, 422):
                codes = {each["code"] for each in answer.json().get("errors", ())} - OF_OTHERS
                if codes or "errors" not in answer.json():
                    refused[route.operation_id] = (answer.status_code, answer.text)
    assert refused == {}
    assert taken >= 40, "the others refer to somebody else's ids, or something stands in their way"
