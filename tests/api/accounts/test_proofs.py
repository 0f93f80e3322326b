"""Step-up: sensitive calls of a session need a proof of who uses it that is at most 15 minutes old."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from deskwire.http.app import ROUTES
from tests.api.accounts.test_own_sessions import SetClock
from tests.support.api.audit_trail import trail
from tests.support.api.browsers import browser, enter, staff
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, client, code, organisation_of, sign_in

MINUTE_MS = 60_000
FRESH = {
    "endMemberSession",
    "endSessionById",
    "endSessions",
    "changeRole",
    "createInvitation",
    "createRole",
    "deleteRole",
    "createPasswordLink",
    "renewInvitation",
    "revokeInvitation",
    "unlinkIdentity",
    "addMember",
    "addPasskey",
    "beginPasskey",
    "beginTotp",
    "confirmTotp",
    "removePasskey",
    "removeTotp",
    "renewRecoveryCodes",
    "resetMemberFactors",
    "changeCredential",
    "changeMember",
    "changeOrganisation",
    "changeWebhook",
    "createChannel",
    "createCredential",
    "createKey",
    "createWebhook",
    "dashboardDeleteContact",
    "deleteAuditPush",
    "deleteMe",
    "deleteProject",
    "endMemberSessions",
    "endMemberToken",
    "exportAuditRecords",
    "exportContactWithNotes",
    "exportResponses",
    "putAuditPush",
    "removeMember",
    "renewMemberPassword",
    "revokeCredential",
    "revokeKey",
    "rotateAuditPushSecret",
    "rotateChannelSecret",
    "rotateCredential",
    "rotateWebhookSecret",
    "setPassword",
}
"""The operations that need a fresh proof; written by hand, so that a route does not lose it unnoticed."""


@asynccontextmanager
async def owner(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """The page of a signed-in owner other than the demo's."""
    hired = await staff(service, "owner", "second@example.com")
    async with browser(service) as page:
        assert (await enter(page, hired["email"])).status_code == 200
        yield page


async def rename(page: httpx.AsyncClient, organisation: str) -> httpx.Response:
    return await page.patch(f"/organisations/{organisation}", json={"name": "Renamed"})


async def prove(page: httpx.AsyncClient, password: str = PASSWORD) -> httpx.Response:
    return await page.post("/auth/session/proof", json={"password": password})


def test_every_sensitive_route_needs_a_fresh_proof() -> None:
    assert {route.operation_id for route in ROUTES if route.access.fresh} == FRESH


async def test_sensitive_call_needs_a_new_proof_after_a_quarter_of_an_hour(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock = SetClock(monkeypatch)
    async with running(tmp_path) as mine, owner(mine) as page:
        organisation = await organisation_of(mine)
        assert (await rename(page, organisation)).status_code == 200
        first = (await page.get("/auth/session")).json()
        assert (first["signedInBy"], first["proofMethods"]) == ("password", ["password"])
        clock.ahead_ms = 14 * MINUTE_MS
        assert (await rename(page, organisation)).status_code == 200
        clock.ahead_ms = 16 * MINUTE_MS
        refused = await rename(page, organisation)
        assert code(refused) == (403, "fresh_proof_required")
        assert refused.json()["methods"] == ["password"]
        assert (await page.get(f"/organisations/{organisation}")).status_code == 200

        assert code(await prove(page, "another password")) == (401, "invalid_login")
        assert code(await rename(page, organisation)) == (403, "fresh_proof_required")
        proved = await prove(page)
        assert proved.status_code == 200
        assert proved.json() == (await page.get("/auth/session")).json()
        assert proved.json()["provedAt"] > first["provedAt"]
        assert (await rename(page, organisation)).status_code == 200
        actions = [record["action"] for record in await trail(mine)]
        assert actions.count("sign_in.proved") == 1
        assert "access.refused" not in actions, "a session that needs a proof is no attack"


async def test_call_without_the_permission_is_not_asked_for_a_proof(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock = SetClock(monkeypatch)
    async with running(tmp_path) as service, browser(service) as page:
        await enter(page, (await staff(service, "agent"))["email"])
        clock.ahead_ms = 16 * MINUTE_MS
        assert code(await rename(page, await organisation_of(service))) == (403, "permission_denied")


async def test_access_token_needs_no_proof_and_gives_none(service: Service) -> None:
    hired = await staff(service, "owner", "token@example.com")
    token = (await sign_in(service, hired["email"], PASSWORD)).json()["token"]
    async with client(service, token) as http:
        assert (await rename(http, await organisation_of(service))).status_code == 200
        assert code(await prove(http)) == (409, "no_session")


async def test_wrong_proofs_are_throttled_like_sign_ins(service: Service) -> None:
    async with owner(service) as page:
        answers = [code(await prove(page, f"wrong {each}")) for each in range(11)]
        assert answers == [*[(401, "invalid_login")] * 10, (429, "too_many_sign_ins")]
        assert code(await prove(page)) == (429, "too_many_sign_ins")


async def test_page_of_another_origin_proves_nothing(service: Service) -> None:
    async with owner(service) as page:
        answer = await page.post(
            "/auth/session/proof", json={"password": PASSWORD}, headers={"Sec-Fetch-Site": "cross-site"}
        )
        assert code(answer) == (403, "cross_site_request")


async def test_proof_in_an_ended_session_is_refused(service: Service) -> None:
    async with owner(service) as page:
        assert (await page.delete("/users/me/sessions")).status_code == 200
        assert code(await prove(page)) == (401, "session_ended")
        malformed: list[dict[str, Any]] = [{}, {"password": ""}, {"password": PASSWORD, "x": 1}]
        for body in malformed:
            assert (await page.post("/auth/session/proof", json=body)).status_code == 401
