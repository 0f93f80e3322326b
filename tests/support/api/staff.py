"""Members other than the demo's owner: created, signed in and calling through the API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.support.api.openapi_check import caller
from tests.support.api.service import Service
from tests.support.log_leaks import plant

PASSWORD = plant("a long enough password")


@dataclass
class Person:
    """A signed-in user."""

    id: str
    email: str
    token: str
    http: httpx.AsyncClient


async def organisation_of(service: Service) -> str:
    """Return the id of the demo owner's organisation."""
    (found,) = (await service.dashboard.get("/organisations")).json()["items"]
    return str(found["id"])


async def hire(service: Service, role: str, email: str | None = None) -> dict[str, Any]:
    """Add a member to the demo's organisation; return the answer with the one-time password."""
    path = f"/organisations/{await organisation_of(service)}/members"
    body = {"email": email or f"{role}@example.com", "role": role, "name": role.title()}
    answer = await service.dashboard.post(path, json=body)
    assert answer.status_code == 200, answer.text
    hired: dict[str, Any] = answer.json()
    plant(hired["password"])
    return hired


async def sign_in(service: Service, email: str, password: str, new: str | None = None) -> httpx.Response:
    """Sign in and return the answer."""
    body = {"email": email, "password": password} | ({} if new is None else {"newPassword": new})
    return await service.http.post("/auth/token", json=body, headers={"Authorization": ""})


@asynccontextmanager
async def person(service: Service, role: str) -> AsyncIterator[Person]:
    """Yield a new member with this role."""
    hired = await hire(service, role)
    token = (await sign_in(service, hired["email"], hired["password"], PASSWORD)).json()["token"]
    async with client(service, token) as http:
        yield Person(hired["id"], hired["email"], token, http)


def client(service: Service, token: str) -> httpx.AsyncClient:
    """Return a client with this token, and no project."""
    return caller(f"{service.url}/v3", {"Authorization": f"Bearer {token}"})


def code(answer: httpx.Response) -> tuple[int, str]:
    """Return status and code of a refusal."""
    return answer.status_code, answer.json()["code"]
