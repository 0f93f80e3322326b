"""`deskwire event tail` against the real service."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from tests.commands.api_client.acting import deskwire
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import environment

TAIL = ("event", "tail", "--from", "beginning", "--once")


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Run a service on an empty directory."""
    async with running(tmp_path) as started:
        yield started


async def test_stored_events_are_printed_as_lines_or_as_original_envelopes(service: Service) -> None:
    conversation = await service.create("u1", message={"text": "Hello"})
    shown = await deskwire(service, *TAIL)
    lines = [line.split() for line in shown.printed.splitlines()]
    assert [(kind, subject, sequence) for _, kind, subject, sequence, _ in lines] == [
        ("conversation.created", conversation["id"], "1"),
        ("message.created", conversation["id"], "2"),
    ]
    printed = (await deskwire(service, *TAIL, "--json")).printed.splitlines()
    assert [json.loads(line) for line in printed] == await service.events()


async def test_only_the_types_that_are_named_are_printed_extensions_among_them(service: Service) -> None:
    await service.create("u1", message={"text": "Hello"})
    await service.dashboard.post("/tickets", json={"title": "T"})
    shown = await deskwire(service, *TAIL, "--types", "message.created,ticket.created", "--json")
    assert [json.loads(line)["type"] for line in shown.printed.splitlines()] == [
        "message.created",
        "ticket.created",
    ]


async def test_it_begins_after_the_named_event(service: Service) -> None:
    await service.create("u1", message={"text": "Hello"})
    first, second = await service.events()
    shown = await deskwire(service, "event", "tail", "--from", first["id"], "--once", "--json")
    assert json.loads(shown.printed) == second


async def test_new_events_are_printed_until_the_command_is_stopped(service: Service) -> None:
    await service.create("u1")
    variables = {"DESKWIRE_URL": service.url, "DESKWIRE_KEY": service.demo["serverKey"]}
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", "deskwire", "event", "tail", "--json"],
        env={**environment(), **variables},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    with trio.fail_after(HANG_TIMEOUT_S):
        seen = b""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_create_again_and_again, service)
            while b"\n" not in seen:
                seen += await process.stdout.receive_some()
            nursery.cancel_scope.cancel()
        process.send_signal(signal.SIGINT)
        async for _ in process.stdout:
            pass
        assert await process.wait() == 0
    event = json.loads(seen.partition(b"\n")[0])
    assert event["type"] == "conversation.created"
    assert event["data"]["conversation"]["contact"]["userId"] == "new"


async def _create_again_and_again(service: Service) -> None:
    """Make conversations until cancelled, because the command does not announce when it has begun to follow."""
    while True:
        await service.create("new")
        await trio.sleep(0.05)


async def test_unknown_types_and_cursors_are_usage_errors(service: Service) -> None:
    for option, value, words in (("--types", "nonsense", "'nonsense'"), ("--from", "evt_1", "an event id")):
        refused = await deskwire(service, "event", "tail", option, value)
        assert (refused.status, refused.printed, words in refused.said) == (2, "", True)


async def test_unavailable_service_ends_a_single_run_with_the_reason(service: Service) -> None:
    refused = await deskwire(service, *TAIL, "--url", "http://127.0.0.1:9")
    assert (refused.status, "can't be reached" in refused.said) == (1, True)
