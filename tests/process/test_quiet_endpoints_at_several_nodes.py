"""A quiet endpoint is probed by one node, and by the other when that dies; so is an audit trail pushed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import httpx
import orjson
import pytest
import trio

from tests.api.events.test_channels_agree import receiving
from tests.process.test_replays_at_several_nodes import couriers, until, until_all
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.node_processes import running_nodes
from tests.support.sockets.receivers import answering

pytestmark = pytest.mark.long

_SETTINGS: Final = {"DESKWIRE_WEBHOOK_RETRY_AFTER_S": "0.1,0.1,0.1"}
_PROBE_S: Final = 10.0


async def test_one_node_probes_a_quiet_endpoint_and_the_other_after_its_death(tmp_path: Path) -> None:
    async with (
        receiving() as receiver,
        running_nodes(tmp_path, "ab", _SETTINGS) as nodes,
        nodes.client(0, nodes.key) as first,
        nodes.client(1, nodes.key) as second,
    ):
        accept, receiver.behaviour = receiver.behaviour, answering("500 No")
        body = {"url": receiver.url, "events": ["message.created"]}
        endpoint = (await first.post("/s2s/webhooks", json=body)).json()["id"]
        texts = [f"missed {number}" for number in range(3)]
        for text in texts:
            contact = {"contact": {"userId": text.replace(" ", "-")}, "message": {"text": text}}
            assert (await second.post("/s2s/conversations", json=contact)).status_code == 200
        await until_all(first, endpoint, "dropped")
        before = len(receiver.requests)
        with trio.fail_after(HANG_TIMEOUT_S):
            await receiver.wait(before + 2)
        probes = [each.at for each in receiver.requests[before:]]
        assert probes[1] - probes[0] > _PROBE_S * 0.8, "one node probes, not both"
        courier = couriers(nodes)[endpoint]
        await nodes.servers[courier].kill()
        receiver.behaviour = accept

        def arrived() -> set[str]:
            bodies = [orjson.loads(each.body) for each in receiver.requests[before:]]
            return {each["data"]["message"]["text"] for each in bodies}

        await until(receiver, lambda: arrived() == {*texts}, HANG_TIMEOUT_S)
        alive = (first, second)[1 - courier]
        with trio.fail_after(HANG_TIMEOUT_S):
            while not (shown := (await alive.get(f"/s2s/webhooks/{endpoint}")).json())["healthy"]:  # noqa: ASYNC110
                await trio.sleep(0.1)  # poll: there is no notification
        assert (shown["dropped"], shown["missed"]) == (0, None)


async def test_the_other_node_pushes_the_audit_trail_on_after_a_kill(tmp_path: Path) -> None:
    """Each record arrives, and none but those that were under way at the kill comes twice."""
    async with (
        receiving() as receiver,
        running_nodes(tmp_path, "ab") as nodes,
        nodes.client(0, nodes.token) as first,
        nodes.client(1, nodes.token) as second,
    ):
        project = (await first.get(f"/projects/{nodes.project}")).json()
        push = f"/organisations/{project['organisationId']}/audit/push"
        assert (await first.put(push, json={"url": receiver.url})).status_code == 200
        for number in range(5):
            await _make(second, nodes.project, f"before {number}")
        await _make(first, nodes.project, "at the kill")
        await nodes.servers[0].kill()
        for number in range(5):
            await _make(second, nodes.project, f"after {number}")
        names = {*(f"before {n}" for n in range(5)), "at the kill", *(f"after {n}" for n in range(5))}

        def arrived() -> Counter[str]:
            found = [record for each in receiver.requests for record in orjson.loads(each.body)["records"]]
            return Counter(each["object"]["name"] for each in found if each["action"] == "credential.created")

        await until(receiver, lambda: arrived().keys() == names, HANG_TIMEOUT_S)
        assert all(count == 1 for name, count in arrived().items() if name.startswith("after"))
        assert max(arrived().values()) <= 2


async def _make(http: httpx.AsyncClient, project: str, name: str) -> None:
    made = await http.post(f"/projects/{project}/credentials", json={"name": name, "permissions": []})
    assert made.status_code == 200, made.text
