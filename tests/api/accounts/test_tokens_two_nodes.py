"""Access tokens that end at one node are refused by every node, and the audit trail's push goes on at the other."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
import pytest
import trio

from tests.api.accounts.test_access_tokens import status_with
from tests.api.audit.test_push import path_of
from tests.api.events.test_channels_agree import receiving
from tests.api.events.test_two_nodes import nodes
from tests.support.api.machines import make
from tests.support.api.service import Service
from tests.support.api.staff import organisation_of, person
from tests.support.deadlines import HANG_TIMEOUT_S

__all__ = ["nodes"]


@pytest.mark.parametrize("how", ["own", "by id", "by a manager"])
async def test_a_token_that_ends_at_one_node_is_refused_at_the_other(
    nodes: tuple[Service, Service], how: str
) -> None:
    here, there = nodes
    async with person(here, "agent") as agent:
        for node in nodes:
            assert await status_with(node, agent.token) == (200, None)
        (listed,) = [
            each for each in (await agent.http.get("/users/me/tokens")).json()["items"] if each["current"]
        ]
        match how:
            case "own":
                answer = await agent.http.post("/auth/token/revoke")
            case "by id":
                answer = await agent.http.delete(f"/users/me/tokens/{listed['id']}")
            case _:
                member = f"/organisations/{await organisation_of(here)}/members/{agent.id}"
                answer = await here.dashboard.delete(f"{member}/tokens/{listed['id']}")
        assert answer.status_code == 200, answer.text
        for node in (there, here):
            assert await status_with(node, agent.token) == (401, "token_ended")


async def test_a_push_has_each_record_of_both_nodes(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    async with receiving() as receiver:
        made = await here.dashboard.put(await path_of(here), json={"url": receiver.url})
        assert made.status_code == 200, made.text
        names = [f"M{number}" for number in range(10)]
        for number, name in enumerate(names):
            await make((here, there)[number % 2], name=name)

        def arrived() -> Counter[str]:
            found: list[Any] = [
                record for each in receiver.requests for record in orjson.loads(each.body)["records"]
            ]
            return Counter(each["object"]["name"] for each in found if each["action"] == "credential.created")

        with trio.fail_after(HANG_TIMEOUT_S):
            while arrived().keys() != {*names}:
                await receiver.wait(len(receiver.requests) + 1)
        assert arrived() == dict.fromkeys(names, 1), "one node pushes at a time"
