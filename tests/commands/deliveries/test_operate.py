"""`deskwire deliveries` and `deskwire redeliver` against the real service and real receivers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
from click.testing import CliRunner

from deskwire.cli import cli
from tests.commands.api_client.acting import Outcome, deskwire
from tests.commands.listen.conftest import receiving
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Receiver, answering
from tests.support.sockets.server_process import free_port

OK = answering("200 OK", b"thanks")
EVIL = "\x1b[2J\x1b]0;owned\x07gone\u202e\x9b31m\nsecond line"
BAD = answering("500 Oops", EVIL.encode())
NOBODY = "dlv_01KZ0000000000000000000000"


@dataclass
class Stage:
    """A service with one endpoint that takes everything and one that refuses everything."""

    service: Service
    good: Receiver
    bad: Receiver
    endpoints: dict[str, str]

    async def deskwire(self, *arguments: str, key: str | None = None) -> Outcome:
        """Run a command as an operator does, with the credentials in the environment."""
        return await deskwire(self.service, *arguments, key=key)

    async def listed(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the deliveries that `deliveries --json` prints."""
        done = await self.deskwire("deliveries", *arguments, "--json")
        assert done.status == 0, done.said
        return [json.loads(line) for line in done.printed.splitlines()]

    async def ended(self, name: str, count: int) -> list[dict[str, Any]]:
        """Return the endpoint's deliveries, newest first, once that many have ended."""
        path = f"/s2s/webhooks/{self.endpoints[name]}/deliveries"
        with trio.fail_after(HANG_TIMEOUT_S):
            while True:
                items = (await self.service.http.get(path)).json()["items"]
                if sum(each["endedAt"] is not None for each in items) >= count:
                    return list(items)
                await trio.sleep(0.02)  # poll: there is no notification of a record


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    pauses = (0.0, 0.0, 0.0)
    async with (
        receiving(OK) as good,
        receiving(BAD) as bad,
        running(tmp_path, webhook_retry_after_s=pauses, log_level="error") as service,
    ):
        endpoints = {}
        for name, receiver in (("good", good), ("bad", bad)):
            answer = await service.http.post("/s2s/webhooks", json={"url": receiver.url})
            endpoints[name] = answer.json()["id"]
        yield Stage(service, good, bad, endpoints)


async def test_all_deliveries_are_listed_newest_first_and_filtered(stage: Stage) -> None:
    off = await stage.service.http.patch(f"/s2s/webhooks/{stage.endpoints['bad']}", json={"catchUp": "off"})
    assert off.status_code == 200  # a slow test meets no probe with a missed event
    conversation = await stage.service.create(message={"text": "Hello"})
    other = await stage.service.create(user="u2")
    delivered, dropped = await stage.ended("good", 3), await stage.ended("bad", 3)
    everything = await stage.listed()
    assert {each["id"] for each in everything} == {each["id"] for each in (*delivered, *dropped)}
    made = [each["createdAt"] for each in everything]
    assert made == sorted(made, reverse=True)
    assert await stage.listed(stage.endpoints["bad"]) == dropped
    for options, expected in (
        (("--status", "dropped"), 3),
        (("--type", "message.created"), 2),
        (("--conversation", other["id"]), 2),
        (("--conversation", conversation["id"], "--status", "delivered", "--type", "message.created"), 1),
        (("--limit", "4"), 4),
        (("--since", "1h"), 6),
        (("--until", "1h"), 0),
        (("--since", "2000-01-01", "--until", "2000-01-02T00:00:00Z"), 0),
    ):
        assert len(await stage.listed(*options)) == expected, options
    assert (await stage.listed("--limit", "4")) == everything[:4]


async def test_table_has_each_deliverys_figures_and_an_empty_one_is_reported(stage: Stage) -> None:
    empty = await stage.deskwire("deliveries")
    assert (empty.status, empty.printed, empty.said) == (0, "", "No deliveries.\n")
    await stage.service.create()
    (delivered,) = await stage.ended("good", 1)
    (dropped,) = await stage.ended("bad", 1)
    done = await stage.deskwire("deliveries")
    rows = {
        each["id"]: next(row for row in done.printed.splitlines() if each["id"] in row)
        for each in (delivered, dropped)
    }
    good, bad = (
        [cell.strip() for cell in rows[each["id"]].split("│")[1:-1]] for each in (delivered, dropped)
    )
    assert good == [
        delivered["createdAt"], delivered["id"], stage.endpoints["good"], "conversation.created",
        delivered["conversationId"], "1", "delivered", "1", "200",
    ]  # fmt: skip
    assert bad[-3:] == ["dropped", "4", "status 500"]


async def test_one_delivery_is_shown_with_all_attempts_and_answers_that_stay_text(stage: Stage) -> None:
    await stage.service.create()
    (dropped,) = await stage.ended("bad", 1)
    done = await stage.deskwire("deliveries", "show", dropped["id"])
    assert done.status == 0
    assert all(line.isprintable() for line in done.printed.splitlines())
    assert done.printed.count("  | \\x1b[2J\\x1b]0;owned\\x07gone\\u202e\\x9b31m\n  | second line\n") == 4
    for words in (dropped["id"], dropped["eventId"], dropped["reason"], "Attempt 1, ", "Attempt 4, "):
        assert words in done.printed
    as_json = await stage.deskwire("deliveries", "show", dropped["id"], "--json")
    assert json.loads(as_json.printed) == dropped
    assert as_json.printed.isascii()


async def test_one_delivery_is_sent_again_under_a_new_id(stage: Stage) -> None:
    await stage.service.create()
    (delivered,) = await stage.ended("good", 1)
    done = await stage.deskwire("redeliver", delivered["id"])
    assert done.status == 0, done.said
    await stage.good.wait(2)
    first, second = stage.good.requests
    assert first.body == second.body
    new = second.headers["Service-Delivery-Id"]
    assert done.printed.startswith(f"Sent again as {new}; ")
    as_json = await stage.deskwire("redeliver", delivered["id"], "--json")
    assert json.loads(as_json.printed)["redeliveryOf"] == delivered["id"]


async def test_missed_events_of_an_endpoint_are_counted_and_then_sent_again(stage: Stage) -> None:
    conversation = await stage.service.create()
    await stage.service.say(conversation, "Hello")
    dropped = await stage.ended("bad", 2)
    everything = ("redeliver", "--endpoint", stage.endpoints["bad"], "--since", "1h")
    dry = await stage.deskwire(*everything, "--dry-run")
    assert (dry.status, dry.printed) == (0, "2 deliveries would be sent again.\n")
    since = ("redeliver", "--endpoint", stage.endpoints["bad"], "--since", dropped[1]["eventId"])
    behind = await stage.deskwire(*since, "--dry-run", "--json")
    assert json.loads(behind.printed)["count"] == 1
    stage.bad.behaviour = OK
    stage.bad.requests.clear()
    done = await stage.deskwire(*everything)
    assert (done.status, done.printed) == (0, "2 deliveries sent again.\n")
    await stage.bad.wait(2)


async def test_refusal_of_the_service_ends_with_status_1_and_its_text(stage: Stage) -> None:
    unknown = await stage.deskwire("redeliver", NOBODY)
    assert (unknown.status, unknown.printed) == (1, "")
    assert "HTTP 404 delivery_not_found: There is no such delivery." in unknown.said
    kind = await stage.deskwire("deliveries", "--type", "message.creatd")
    assert kind.status == 1
    assert "message.creatd" in kind.said
    wrong = await stage.deskwire("deliveries", key="sk_wrong_and_never_shown")
    assert wrong.status == 1
    assert "The server key is not accepted; check --key, DESKWIRE_KEY or demo.json" in wrong.said
    assert "sk_wrong" not in wrong.said


@pytest.mark.parametrize(
    "arguments",
    [
        ("deliveries", "cnv_1"),
        ("deliveries", "show"),
        ("deliveries", "show", "dlv_1"),
        ("deliveries", "--since", "yesterday"),
        ("deliveries", "--status", "lost"),
        ("deliveries", "--limit", "0"),
        ("redeliver",),
        ("redeliver", NOBODY, "--endpoint", "whk_01KZ0000000000000000000000"),
        ("redeliver", NOBODY, "--dry-run"),
        ("redeliver", "--endpoint", "whk_01KZ0000000000000000000000"),
        ("redeliver", "--endpoint", "../x", "--since", "1h"),
        ("redeliver", "--since", "1h"),
    ],
)
def test_usage_error_ends_with_2_before_any_request(arguments: tuple[str, ...]) -> None:
    access = ("--url", f"http://127.0.0.1:{free_port()}", "--key", "sk_1")
    done = CliRunner().invoke(cli, [*arguments, *access])
    assert done.exit_code == 2, done.output


def test_unreachable_service_ends_with_1_and_a_message() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = CliRunner().invoke(cli, ["deliveries", "--url", url, "--key", "sk_1"])
    assert done.exit_code == 1
    assert done.stderr.startswith(f"Error: {url} can't be reached: ")


@pytest.mark.parametrize("arguments", [("deliveries", "--help"), ("deliveries", "-h")])
def test_help_names_both_commands(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0
    assert "  list " in done.output
    assert "  show " in done.output
