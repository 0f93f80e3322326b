"""The stream of agents through restarts, crashes, gaps and readers that do not read (ADR 51)."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Transaction
from tests.support.api.agent_stream import page
from tests.support.api.openapi_check import caller
from tests.support.api.service import Service, running, tapping
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import Server
from tests.support.stores import AnyStore

LARGE = 200_000
"""Bytes of an event that fills buffers."""


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> list[AnyStore]:
    """The stores of the services that are started from now on."""
    return tapping(monkeypatch)


async def flood(service: Service, store: AnyStore, count: int, size: int = LARGE) -> str:
    """Commit this number of events of this size; return the id of the last one."""

    def job(tx: Transaction) -> str:
        project = tx.project(service.demo["projectId"])
        assert isinstance(project, Project)
        draft = EventDraft("contact.updated", None, {"x": "x" * size})
        made = [tx.append_event(project, draft, None, 1_800_000_000_000) for _ in range(count)]
        return made[-1].id

    return await store.write(job)


async def test_page_continues_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as service, page(service.dashboard) as desk:
        conversation = await service.create()
        await service.say(conversation, "before")
        had = [await desk.event(), await desk.event()]
        service.stop()
        assert await desk.bye() == "shutdown"
    async with running(tmp_path) as service:
        after = await service.say(conversation, "after")
        async with page(service.dashboard, after=had[-1]["id"]) as desk:
            assert (desk.hello["gap"], desk.hello["resumedAfter"]) == (False, had[-1]["id"])
            assert (await desk.event())["data"]["message"]["id"] == after["id"]


async def test_acknowledged_events_come_once_after_any_kill(tmp_path: Path) -> None:
    server = Server(tmp_path)
    seen: list[Any] = []
    posted: list[str] = []
    for round_ in range(4):
        await server.start()
        after = seen[-1]["id"] if seen else f"evt_{'0' * 26}"
        user = {"Authorization": f"Bearer {server.demo()['token']}", "project": server.demo()["projectId"]}
        async with caller(f"{server.url}/v3", user) as dashboard, page(dashboard, after=after) as desk:
            assert not desk.hello["gap"]
            if round_ < 3:
                posted += await talk(server)
            while len(messages(seen)) < len(posted) - (2 if round_ < 3 else 0):
                seen.append(await desk.event())
            await server.kill()
    assert messages(seen) == posted
    assert len({each["id"] for each in seen}) == len(seen)


def messages(seen: list[Any]) -> list[str]:
    """Return the ids of the received messages."""
    return [each["data"]["message"]["id"] for each in seen if "message" in each["data"]]


async def talk(server: Server) -> list[str]:
    """Post five messages; return their ids."""
    key = {"Authorization": f"Bearer {server.demo()['serverKey']}"}
    async with caller(f"{server.url}/v3", key) as http:
        made = await http.post("/s2s/conversations", json={"contact": {"userId": "u1"}})
        path = f"/s2s/conversations/{made.json()['id']}/messages"
        return [(await http.post(path, json={"text": text})).json()["id"] for text in "12345"]


async def test_pruned_event_is_a_gap_but_the_newest_pruned_one_is_not(
    service_with_store: tuple[Service, AnyStore],
) -> None:
    service, store = service_with_store
    conversation = await service.create()
    for text in ("one", "two", "three"):
        await service.say(conversation, text)
    events = await service.events()
    await store.write(lambda tx: tx.prune_events(1 << 60, 2, 0))
    for event, gap in zip(events, (True, False, False, False), strict=True):
        async with page(service.dashboard, after=event["id"]) as desk:
            assert desk.hello["gap"] is gap
            if not gap and event is not events[-1]:
                rest = await desk.until(events[-1]["id"])
                assert rest == [each for each in events if each["id"] > event["id"]]
    async with page(service.dashboard, after=f"evt_{'0' * 26}") as desk:
        assert desk.hello["gap"]


@pytest.fixture
async def service_with_store(tmp_path: Path, stores: list[AnyStore]) -> Any:
    """A service, and its store."""
    async with running(tmp_path) as service:
        yield service, stores[-1]


async def test_events_of_an_offline_hour_come_in_order(
    service_with_store: tuple[Service, AnyStore],
) -> None:
    service, store = service_with_store
    await service.create()
    (first,) = await service.events()
    last = await flood(service, store, 10_000, 100)
    async with page(service.dashboard, after=first["id"]) as desk:
        found = await desk.until(last)
    assert len(found) == 10_000
    assert [each["id"] for each in found] == sorted({each["id"] for each in found})


async def test_reader_that_never_reads_is_dropped_and_delays_no_other(
    tmp_path: Path, stores: list[AnyStore]
) -> None:
    async with running(tmp_path, stream_write_timeout_s=0.5) as service, page(service.dashboard) as good:
        silent = await silent_reader(service)
        with silent:
            last = await flood(service, stores[-1], 60)
            assert len(await good.until(last)) == 60
            await until(service, 1)
        said = await service.say(await service.create(), "still here")
        while (await good.event())["data"].get("message", {}).get("id") != said["id"]:
            pass


async def silent_reader(service: Service) -> socket.socket:
    """A client that requests the stream and reads nothing."""
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    await trio.to_thread.run_sync(client.connect, (host, int(port)))
    head = f"GET /v3/stream?project={service.demo['projectId']} HTTP/1.1\r\nHost: x\r\n"
    client.sendall(f"{head}Authorization: Bearer {service.demo['token']}\r\n\r\n".encode())
    await until(service, 2)
    return client


async def until(service: Service, count: int) -> None:
    """Wait until this number of streams is open."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while await open_streams(service) != count:  # noqa: ASYNC110  # poll: there is no notification
            await trio.sleep(0.05)  # poll: there is no notification


async def open_streams(service: Service) -> int:
    """The number of streams that are open."""
    shown = (await service.http.get(f"{service.url}/metrics", headers={"Authorization": ""})).text
    (line,) = [each for each in shown.splitlines() if each.startswith("deskwire_agent_streams ")]
    return int(float(line.split()[1]))


async def test_list_fetched_after_the_hello_plus_events_is_complete(
    service: Service,
) -> None:
    """Bootstrap: messages written in between are in the list, in the events, or in both."""
    begun, made = trio.Event(), list[str]()

    async def write() -> None:
        for number in range(40):
            made.append((await service.create(f"u{number}"))["id"])
            if number == 5:
                begun.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await begun.wait()
        async with page(service.dashboard) as desk:
            known = await everything(service)
            while len(known) < 40:
                about = (await desk.event())["data"]["conversation"]
                known[about["id"]] = about
    assert {*made} == {*known}


async def everything(service: Service) -> dict[str, Any]:
    """All conversations as the list has them."""
    answer = await service.dashboard.get("/conversations", params={"limit": "200"})
    return {each["id"]: each for each in answer.json()["items"]}
