"""Browsers that sign in with a cookie, as seen by the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import httpx

from tests.support.api.openapi_check import caller
from tests.support.api.service import Service
from tests.support.api.staff import PASSWORD, hire, sign_in
from tests.support.log_leaks import plant

PAGE: Final = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
"""The headers that a page's request has, and no page can change."""

NAME: Final = "deskwire"
"""The cookie's name over plain HTTP."""


def browser(service: Service, headers: Mapping[str, str] = PAGE) -> httpx.AsyncClient:
    """Return a client that keeps cookies and has no token; close it, or use it as a context."""
    return caller(f"{service.url}/v3", headers)


def cookie_header(http: httpx.AsyncClient) -> dict[str, str]:
    """Return the cookies of a browser as a header, for a connection of its own."""
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in http.cookies.items())}


async def enter(http: httpx.AsyncClient, email: str, password: str = PASSWORD, **body: str) -> httpx.Response:
    """Sign in and return the answer. From then on no log may contain the cookie."""
    answer = await http.post("/auth/session", json={"email": email, "password": password, **body})
    for secret in answer.cookies.values():
        plant(secret)
    return answer


async def staff(service: Service, role: str, email: str | None = None) -> dict[str, Any]:
    """Hire a member with this role who has set a password."""
    hired = await hire(service, role, email)
    answer = await sign_in(service, hired["email"], hired["password"], PASSWORD)
    assert answer.status_code == 200, answer.text
    return hired
