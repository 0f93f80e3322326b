"""After an erasure no erased byte is in the data directory, while the service runs and after (decisions 4).

A feature that stores customers' texts in a place of its own belongs into `tests.support.api.planted_texts`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.api.operating.test_metrics import until
from tests.support.api.planted_texts import (
    CONVERSATION,
    CUSTOMER,
    OTHER,
    Planted,
    left,
    listening,
    mark,
    overwritten,
    plant,
    vanished,
)
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import LOOK_S

OF_THE_TICKET = ("oldticket", "ticket", "ticketdescription", "tickettype", "oldtag", "tag")
USER = ("userid",)


@pytest.mark.sqlite  # its pages still have replaced values, which no row of another store shows
async def test_the_markers_are_there_before_anything_is_erased(service: Service) -> None:
    async with listening(service) as log:
        await plant(service, log)
        assert {place for place, _ in left(service.directory, CONVERSATION + CUSTOMER + USER)} == {
            *CONVERSATION,
            *CUSTOMER,
            *USER,
        }


async def test_nothing_of_a_deleted_conversation_is_left(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with running(tmp_path) as service:
        async with listening(service) as log:
            planted = await plant(service, log)
            bystander = await plant(service, log, OTHER)
            answer = await service.http.delete(f"/s2s/conversations/{planted.conversation['id']}")
            assert answer.json() == {"id": planted.conversation["id"], "deleted": True}
            await overwritten(service)
            assert left(tmp_path, CONVERSATION) == []
        await unreachable(service, planted)
        assert (await service.fetch(bystander.conversation))["title"]
        contact = await service.http.get(f"/s2s/contacts/{planted.user}")
        assert contact.status_code == 200
    assert left(tmp_path, CONVERSATION) == []
    assert left(tmp_path, CONVERSATION[1:2], OTHER) != []
    assert "mk" not in "".join(capfd.readouterr())


async def test_erasing_the_known_contact_leaves_no_data_of_the_merged_visitor(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with running(tmp_path) as service:
        async with listening(service) as log:
            planted = await plant(service, log)
            await service.http.put("/s2s/contacts/known", json={"name": "Known"})
            answer = await service.http.post("/s2s/contacts/known/merge", json={"from": planted.user})
            assert answer.status_code == 200
            assert {place for place, _ in left(tmp_path, CONVERSATION + CUSTOMER)} >= {
                "message",
                "response",
                "ticket",
            }
            assert (await service.http.delete("/s2s/contacts/known")).status_code == 200
            await overwritten(service)
            assert left(tmp_path, CONVERSATION + CUSTOMER) == []
        await unreachable(service, planted)
        last = [each["data"]["contact"] for each in (await service.events())[-2:]]
        assert [(each["userId"], each["name"]) for each in last] == [(planted.user, None), ("known", None)]
    assert left(tmp_path, CONVERSATION + CUSTOMER) == []
    assert "mk" not in "".join(capfd.readouterr())


async def test_erased_contact_leaves_only_its_user_id_in_the_deletion(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with running(tmp_path) as service:
        async with listening(service) as log:
            planted = await plant(service, log)
            await plant(service, log, OTHER)
            answer = await service.http.delete(f"/s2s/contacts/{planted.user}")
            assert answer.json() == {"id": planted.contact, "deleted": True}
            await overwritten(service)
            assert left(tmp_path, CONVERSATION + CUSTOMER) == []
        await unreachable(service, planted)
        for client, path in (
            (service.http, f"/s2s/contacts/{planted.user}"),
            (service.http, f"/s2s/contacts/{planted.user}/conversations"),
            (service.dashboard, f"/sessions/{planted.contact}/memory"),
            (service.dashboard, f"/tickets/{planted.ticket}"),
        ):
            assert (await client.get(path)).status_code == 404, path
    assert left(tmp_path, CONVERSATION + CUSTOMER) == []
    stays = {*CONVERSATION, *CUSTOMER} - {"oldlogs"}  # which a newer snapshot has replaced
    assert {place for place, _ in left(tmp_path, tuple(stays), OTHER)} == stays
    assert "mk" not in "".join(capfd.readouterr())


async def test_deletions_of_retention_leave_no_byte(tmp_path: Path) -> None:
    short = {"retention_day_s": 0.05, "retention_interval_s": 0.1}
    async with running(tmp_path, **short) as service:
        async with listening(service) as log:
            planted = await plant(service, log)
            project = f"/projects/{service.demo['projectId']}"
            days = {"settings": {"archivedRetentionDays": 1}}
            assert (await service.dashboard.patch(project, json=days)).status_code == 200
            path = f"/s2s/conversations/{planted.conversation['id']}"
            await service.http.patch(path, json={"archived": True})
            await deleted(service, planted.conversation)
            await overwritten(service)
            assert left(tmp_path, CONVERSATION) == []
        await unreachable(service, planted)
        await until(service, lambda f: f("retention_pruned_rows_total", what="archived_conversations") == 1)
        deletion = (await service.events())[-1]
        assert (deletion["type"], deletion["data"]["reason"]) == ("conversation.deleted", "retention")
        assert {place for place, _ in left(tmp_path, OF_THE_TICKET)} == set(OF_THE_TICKET)
    assert left(tmp_path, CONVERSATION) == []


async def test_running_service_deletes_bot_only_conversations_and_no_agents_ones(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, bot_only_retention_s=0.3, retention_interval_s=0.1) as service:
        answered = await service.create(message={"text": "Hi", "author": {"type": "agent"}})
        alone = await service.create(message={"text": "Hi"})
        await deleted(service, alone)
        (deletion,) = [e for e in await service.events() if e["type"] == "conversation.deleted"]
        assert deletion["data"]["conversation"]["id"] == alone["id"]
        assert deletion["sequence"] == 3
        assert (await service.fetch(answered))["status"] == "OPEN"


async def test_forgotten_memory_of_a_contact_leaves_no_byte(service: Service) -> None:
    planted = await plant(service)
    path = f"/sessions/{planted.contact}/memory"
    entry = {"name": "kept", "content": mark("cleared")}
    assert (await service.dashboard.post(path, json=entry)).status_code == 200
    assert (await service.dashboard.delete(f"{path}/{mark('memoryname')}")).status_code == 200
    await vanished(service.directory, "memoryname", "memorycontent", "memorydescription")
    assert (await service.dashboard.delete(path)).json()["entries"] == 1
    await vanished(service.directory, "cleared")


async def deleted(service: Service, conversation: dict[str, Any]) -> None:
    """Return once the conversation is no longer found."""
    path = f"/s2s/conversations/{conversation['id']}"
    with trio.fail_after(HANG_TIMEOUT_S):
        while (await service.http.get(path)).status_code == 200:  # noqa: ASYNC110  # as a client would look
            await trio.sleep(LOOK_S)  # poll: there is no notification


async def unreachable(service: Service, planted: Planted) -> None:
    """Assert that every path to the conversation answers 404, and its attachment's URL, too."""
    ours, agents = service.http, service.dashboard
    s2s = f"/s2s/conversations/{planted.conversation['id']}"
    desk = f"/conversations/{planted.conversation['id']}"
    for client, method, path, body in (
        (ours, "GET", s2s, None),
        (ours, "PATCH", s2s, {"title": "x"}),
        (ours, "DELETE", s2s, None),
        (ours, "GET", f"{s2s}/messages", None),
        (ours, "POST", f"{s2s}/messages", {"text": "x"}),
        (ours, "GET", f"{s2s}/events", None),
        (ours, "POST", f"{s2s}/close", {}),
        (ours, "POST", f"{s2s}/reopen", {}),
        (ours, "POST", f"{s2s}/assign", {"assignee": None}),
        (ours, "POST", f"{s2s}/read", {}),
        (ours, "POST", f"{s2s}/rating", {"rating": 3}),
        (ours, "PUT", f"{s2s}/network-logs", {"requests": []}),
        (ours, "GET", f"{s2s}/workflow", None),
        (ours, "POST", f"{s2s}/workflow/reply", {"actionId": 20, "value": "x"}),
        (agents, "GET", f"{desk}/workflow", None),
        (agents, "GET", desk, None),
        (agents, "PATCH", desk, {"title": "x"}),
        (agents, "DELETE", desk, None),
        (agents, "GET", f"{desk}/messages", None),
        (agents, "POST", f"{desk}/messages", {"text": "x", "internal": True}),
        (agents, "POST", f"{desk}/typing", {"typing": True}),
        (agents, "GET", f"{desk}/network-logs", None),
        (agents, "GET", f"{desk}/events", None),
    ):
        answer = await client.request(method, path, json=body)
        assert (answer.status_code, method, path) == (404, method, path)
    async with httpx.AsyncClient() as anybody:
        assert (await anybody.get(planted.upload["url"])).status_code == 404
