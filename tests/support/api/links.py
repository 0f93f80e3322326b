"""One-time links: made, looked at and used through the API."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.api.openapi_check import caller
from tests.support.api.service import Service
from tests.support.api.staff import PASSWORD, organisation_of
from tests.support.log_leaks import plant

INVITED = "ada@example.com"


def token_of(url: str) -> str:
    """Return the token of a link, which is in no log."""
    before, _, token = url.partition("#")
    assert before.endswith("/desk/link")
    return plant(token)


async def invite(
    service: Service,
    email: str = INVITED,
    role: str = "agent",
    http: httpx.AsyncClient | None = None,
    **more: Any,
) -> httpx.Response:
    """Invite a person to the demo's organisation, as its owner or with another client."""
    path = f"/organisations/{await organisation_of(service)}/invitations"
    return await (http or service.dashboard).post(path, json={"email": email, "role": role, **more})


async def invited(service: Service, email: str = INVITED, role: str = "agent", **more: Any) -> dict[str, Any]:
    """Return a new invitation."""
    answer = await invite(service, email, role, **more)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    token_of(found["url"])
    return found


async def inspect(service: Service, url: str) -> httpx.Response:
    """Look at a link, without a credential."""
    async with caller(f"{service.url}/v3", {}) as http:
        return await http.post("/auth/links/inspect", json={"token": url.partition("#")[2]})


async def use(service: Service, url: str, password: str = PASSWORD, **more: Any) -> httpx.Response:
    """Use a link, without a credential."""
    async with caller(f"{service.url}/v3", {}) as http:
        body = {"token": url.partition("#")[2], "password": password, **more}
        return await http.post("/auth/links/use", json=body)
