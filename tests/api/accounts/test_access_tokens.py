"""Access tokens ended one by one: at once, for good, on every node, and with the streams that they opened (ADR 15)."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jwt
import pytest
import trio

from deskwire.engine.accounts import access_tokens
from deskwire.engine.core.clock import wall_clock
from deskwire.program.secret_file import installation_secrets
from tests.support.api.agent_stream import page
from tests.support.api.browsers import PAGE, browser, enter, staff
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, client, code, hire, organisation_of, person, sign_in
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.admin_socket import operate
from tests.support.stores import beside


async def issued(service: Service, email: str) -> dict[str, Any]:
    answer = await sign_in(service, email, PASSWORD)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def status_with(service: Service, token: str) -> tuple[int, str | None]:
    async with client(service, token) as http:
        answer = await http.get("/users/me")
        return answer.status_code, answer.json().get("code")


async def test_a_token_ends_itself_and_no_other_one(service: Service) -> None:
    async with person(service, "agent") as agent:
        other = await issued(service, agent.email)
        answer = await agent.http.post("/auth/token/revoke")
        assert (answer.status_code, answer.json()["ended"]) == (200, True)
        assert code(await agent.http.get("/users/me")) == (401, "token_ended")
        assert code(await agent.http.post("/auth/token/revoke")) == (401, "token_ended")
        assert await status_with(service, other["token"]) == (200, None)


async def test_the_list_has_tokens_in_force_and_says_which_one_asks(service: Service) -> None:
    async with person(service, "agent") as agent:
        other = await issued(service, agent.email)
        operator = await operate(service, "token.create", user=agent.email, ttlS=86_400)
        listed = (await agent.http.get("/users/me/tokens")).json()["items"]
        assert [(each["source"], each["current"]) for each in listed] == [
            ("operator", False),
            ("sign_in", False),
            ("sign_in", True),
        ]
        assert [each["id"] for each in listed[:2]] == [operator["id"], other["id"]]
        assert (await agent.http.delete(f"/users/me/tokens/{other['id']}")).status_code == 200
        left = (await agent.http.get("/users/me/tokens")).json()["items"]
        assert [each["id"] for each in left] == [listed[0]["id"], listed[2]["id"]]
        assert await status_with(service, other["token"]) == (401, "token_ended")
        assert await status_with(service, operator["token"]) == (200, None)


async def test_manager_ends_a_members_token_and_only_an_owner_ends_an_owners(service: Service) -> None:
    members = f"/organisations/{await organisation_of(service)}/members"
    async with person(service, "agent") as agent, person(service, "admin") as admin:
        (token,) = (await admin.http.get(f"{members}/{agent.id}/tokens")).json()["items"]
        assert code(await agent.http.get(f"{members}/{admin.id}/tokens"))[0] == 403
        owner = (await service.dashboard.get("/users/me")).json()["id"]
        (own,) = (await service.dashboard.get("/users/me/tokens")).json()["items"]
        refused = await admin.http.delete(f"{members}/{owner}/tokens/{own['id']}")
        assert code(refused) == (403, "owner_protected")
        wrong = await admin.http.delete(f"{members}/{admin.id}/tokens/{token['id']}")
        assert code(wrong) == (404, "token_not_found"), "it is another member's"
        assert code(await agent.http.delete(f"/users/me/tokens/{own['id']}")) == (404, "token_not_found")
        ended = await admin.http.delete(f"{members}/{agent.id}/tokens/{token['id']}")
        assert ended.status_code == 200
        assert code(await agent.http.get("/users/me")) == (401, "token_ended")


async def test_the_end_survives_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as service, person(service, "agent") as agent:
        assert (await agent.http.post("/auth/token/revoke")).status_code == 200
        other = await issued(service, agent.email)
    async with running(tmp_path) as service:
        assert await status_with(service, agent.token) == (401, "token_ended")
        assert await status_with(service, other["token"]) == (200, None)


async def test_a_stream_ends_with_its_token(service: Service) -> None:
    async with person(service, "agent") as agent:
        agent.http.headers["project"] = service.demo["projectId"]
        other = await issued(service, agent.email)
        theirs = {"authorization": f"Bearer {other['token']}", "project": service.demo["projectId"]}
        async with page(agent.http) as desk, page(service.http, theirs) as second:
            assert (await agent.http.post("/auth/token/revoke")).status_code == 200
            assert await desk.bye() == "session_ended"
            await service.create()
            assert (await second.next("message")).data["type"] == "conversation.created"


def signed(service: Service, **claims: Any) -> str:
    """A token that another party has signed with the installation's secret."""
    secret = installation_secrets(service.directory, None).current
    return jwt.encode({"exp": wall_clock() // 1000 + 600, **claims}, secret, algorithm="HS256")


@pytest.mark.parametrize("jti", [None, "of-another-form", "tok_1"])
async def test_token_of_another_issuer_ends_too_in_any_encoding_of_its_signature(
    service: Service, jti: Any
) -> None:
    async with person(service, "agent") as agent:
        named = {} if jti is None else {"jti": jti}
        token = signed(service, sub=agent.id, **named)
        async with client(service, token) as http:
            assert (await http.post("/auth/token/revoke")).status_code == 200
        head, _, signature = token.rpartition(".")
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        spare = letters[letters.index(signature[-1]) ^ 1]  # two bits of the last letter are not read
        same = f"{head}.{signature[:-1]}{spare}"
        assert urlsafe_b64decode(signature + "=") == urlsafe_b64decode(signature[:-1] + spare + "=")
        for written in (token, same):
            status, reason = await status_with(service, written)
            assert (status, reason) in ((401, "token_ended"), (401, "invalid_token"))
        assert await status_with(service, signed(service, sub=agent.id, other=1)) == (200, None)


async def test_a_foreign_claim_ends_no_token_of_another_user(service: Service) -> None:
    async with person(service, "agent") as agent, person(service, "viewer") as viewer:
        payload = agent.token.split(".")[1]
        stolen = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["jti"]
        async with client(service, signed(service, sub=viewer.id, jti=stolen)) as http:
            assert code(await http.post("/auth/token/revoke")) == (404, "token_not_found")
        assert (await agent.http.get("/users/me")).status_code == 200


async def test_a_session_has_no_token_to_end(service: Service) -> None:
    hired = await staff(service, "agent")
    async with browser(service, PAGE) as desk:
        assert (await enter(desk, hired["email"], PASSWORD)).status_code == 200
        assert code(await desk.post("/auth/token/revoke")) == (409, "no_access_token")
        listed = (await desk.get("/users/me/tokens")).json()["items"]
        assert [each["current"] for each in listed] == [False] * len(listed)


async def test_ended_tokens_are_bounded_and_a_new_password_ends_the_rest(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_tokens, "ENDED_MAX", 2)
    async with person(service, "agent") as agent:
        tokens = [await issued(service, agent.email) for _ in range(3)]
        for each in tokens[:2]:
            assert (await agent.http.delete(f"/users/me/tokens/{each['id']}")).status_code == 200
        again = await agent.http.delete(f"/users/me/tokens/{tokens[0]['id']}")
        assert again.status_code == 200, "it has ended already"
        refused = await agent.http.delete(f"/users/me/tokens/{tokens[2]['id']}")
        assert code(refused) == (429, "too_many_ended_tokens")
        body = {"password": PASSWORD, "newPassword": "quite another long password"}
        assert (await agent.http.post("/users/me/password", json=body)).status_code == 200
        assert (await status_with(service, tokens[2]["token"]))[0] == 401


async def test_a_new_password_empties_the_list(service: Service) -> None:
    async with person(service, "agent") as agent:
        body = {"password": PASSWORD, "newPassword": "quite another long password"}
        fresh = (await agent.http.post("/users/me/password", json=body)).json()
        async with client(service, fresh["token"]) as http:
            (only,) = (await http.get("/users/me/tokens")).json()["items"]
            assert (only["id"], only["source"]) == (fresh["id"], "password_change")


async def test_expired_tokens_leave_the_list_and_the_database(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        assert len((await service.dashboard.get("/users/me/tokens")).json()["items"]) == 1
        with beside(tmp_path) as connection:
            connection.execute("UPDATE access_tokens SET expires_at = 1")
        assert (await service.dashboard.get("/users/me/tokens")).json()["items"] == []
    async with running(tmp_path), beside_later(tmp_path) as left:
        assert left == 0


@asynccontextmanager
async def beside_later(directory: Path) -> AsyncIterator[int]:
    """The number of stored tokens once retention has gone over them."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            with beside(directory) as connection:
                (left,) = connection.execute("SELECT count(*) FROM access_tokens").fetchone()
            if not left:
                break
            await trio.sleep(0.05)  # poll: there is no notification of the end of retention's first round
    yield left


async def test_nothing_of_the_tokens_of_a_deleted_account_is_kept(service: Service) -> None:
    hired = await hire(service, "agent")
    signed = await sign_in(service, hired["email"], hired["password"], PASSWORD)
    async with client(service, signed.json()["token"]) as http:
        assert (await http.delete("/users/me")).status_code == 200
        assert (await http.get("/users/me")).status_code == 401
    with beside(service.directory) as connection:
        rows = connection.execute(
            'SELECT count(*) FROM access_tokens t JOIN users u ON u.rowid = t."user" WHERE u.deleted_at IS NOT NULL'
        )
        assert rows.fetchone()[0] == 0
