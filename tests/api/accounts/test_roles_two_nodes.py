"""Roles at two nodes on one database: a change at one holds at the other, and concurrent changes keep the rules."""

from __future__ import annotations

from contextlib import AsyncExitStack

import trio

from tests.api.accounts.test_roles import create, member_with, roles_path
from tests.api.events.test_two_nodes import nodes
from tests.support.api.agent_stream import page
from tests.support.api.service import Service
from tests.support.api.staff import client, code, hire
from tests.support.deadlines import fail_after_idle

__all__ = ["nodes"]


async def test_a_role_that_changes_at_one_node_holds_at_the_other(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    path = await roles_path(here)
    async with (
        member_with(here, ("conversations.read", "tickets.read")) as (member, role),
        AsyncExitStack() as stack,
    ):
        elsewhere = await stack.enter_async_context(client(there, member.token))
        elsewhere.headers["project"] = there.demo["projectId"]
        async with page(elsewhere) as desk:
            assert (await elsewhere.get("/conversations")).status_code == 200
            narrower = {"permissions": ["tickets.read"]}
            changed = await here.dashboard.patch(f"{path}/{role}", json=narrower)
            assert changed.status_code == 200, changed.text
            assert code(await elsewhere.get("/conversations")) == (403, "permission_denied")
            with fail_after_idle(4):
                assert await desk.bye() == "permission_lost"


async def test_a_role_is_not_deleted_while_another_node_gives_it(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    path = await roles_path(here)
    members = path.replace("roles", "members")
    hired = await hire(here, "viewer")
    for number in range(6):
        role = (await create(here, f"Role {number}"))["id"]
        statuses: dict[str, int] = {}

        async def delete(role: str = role, statuses: dict[str, int] = statuses) -> None:
            statuses["deleted"] = (await here.dashboard.delete(f"{path}/{role}")).status_code

        async def give(role: str = role, statuses: dict[str, int] = statuses) -> None:
            answer = await there.dashboard.patch(f"{members}/{hired['id']}", json={"role": role})
            statuses["given"] = answer.status_code

        async with trio.open_nursery() as nursery:
            nursery.start_soon(delete)
            nursery.start_soon(give)
        assert sorted(statuses.items()) in (
            [("deleted", 200), ("given", 422)],
            [("deleted", 409), ("given", 200)],
        )
        await here.dashboard.patch(f"{members}/{hired['id']}", json={"role": "viewer"})


async def test_two_owners_who_leave_at_two_nodes_leave_one(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    members = (await roles_path(here)).replace("roles", "members")
    first = (await here.dashboard.get("/users/me")).json()["id"]
    async with member_with(here, ("tickets.read",)) as (second, _):
        made = await here.dashboard.patch(f"{members}/{second.id}", json={"role": "owner"})
        assert made.status_code == 200, made.text
        statuses = []

        async def leave(service: Service, token: str, user: str) -> None:
            async with client(service, token) as http:
                statuses.append((await http.delete(f"{members}/{user}")).status_code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(leave, here, here.demo["token"], first)
            nursery.start_soon(leave, there, second.token, second.id)
        assert sorted(statuses) == [200, 409]
