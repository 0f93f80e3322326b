"""Data that each release wrote, under the present program: the upgrade that users make."""

from __future__ import annotations

import json
import sqlite3
import tarfile
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import stripe
from packaging.version import Version
from standardwebhooks import Webhook

from deskwire.engine.core.build import version
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.secret import Secrets
from deskwire.storage.sqlite.check import check
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.migrations.list import SCRIPTS
from deskwire.storage.sqlite.migrations.records import applying_programs
from tests.api.events.test_channels_agree import receiving
from tests.support.api.customers import Browser, make_channel, signed
from tests.support.api.service import Service, running
from tests.support.root import ROOT
from tests.upgrades.fill import LAST, opening

HERE: Final = Path(__file__).parent
LONG_S: Final = 50 * 365 * 86_400
# Nothing of the data may have passed its retention, however long ago the release was.
KEPT: Final = {"event_window_s": LONG_S, "bot_only_retention_s": LONG_S, "ui": False}

pytestmark = pytest.mark.sqlite


@dataclass(frozen=True)
class Upgraded:
    """A release's data, with the present program running on it.

    Args:
        was: the objects as the release showed them.
        migrations: those of the release, in order.
    """

    service: Service
    directory: Path
    was: dict[str, Any]
    migrations: list[str]


def releases() -> list[str]:
    """Return the versions whose data is here, oldest first."""
    return sorted((path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz")), key=Version)


@pytest.fixture(params=releases())
async def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Upgraded]:
    with tarfile.open(HERE / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    directory = tmp_path / "data"
    with closing(sqlite3.connect(directory / FILE_NAME)) as connection, connection:
        migrations = [*applying_programs(connection)]
        connection.execute("UPDATE kept_answers SET at = ?", (wall_clock(),))  # they are kept for a day
    was = json.loads((tmp_path / "was.json").read_text())
    async with running(directory, **KEPT) as service:
        yield Upgraded(service, directory, was, migrations)


def covers(now: Any, before: Any) -> bool:
    """Return whether an object still has all fields and values that it had; new fields may have come."""
    if isinstance(before, dict):
        return isinstance(now, dict) and all(
            name in now and (name in {"url", "expiresAt"} or covers(now[name], value))
            for name, value in before.items()
        )
    if isinstance(before, list):
        return len(now) == len(before) and all(map(covers, now, before))
    return bool(now == before)


def test_there_is_data_of_the_newest_release() -> None:
    """`make upgrade-data` packs it with each release: docs/releasing.md."""
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## [")]
    assert headings[1].startswith(f"## [{releases()[-1]}]")


async def test_conversations_messages_and_files_read_as_before(upgraded: Upgraded) -> None:
    service, was = upgraded.service, upgraded.was
    for before in was["conversations"]:
        path = f"/s2s/conversations/{before['id']}"
        assert covers((await service.http.get(path)).json(), before)
        messages = (await service.http.get(f"{path}/messages")).json()["items"]
        if before["id"] in was["messages"]:
            assert covers(messages, was["messages"][before["id"]])
    (attached,) = (each for each in was["messages"].values() if each[0]["attachments"])
    path = f"/s2s/conversations/{attached[0]['conversationId']}/messages"
    (file,) = (await service.http.get(path)).json()["items"][0]["attachments"]
    got = await service.http.get(file["url"].replace(was["demo"]["baseUrl"], service.url))
    assert (got.status_code, len(got.content)) == (200, was["upload"]["size"])


async def test_feed_has_the_same_events_in_their_order(upgraded: Upgraded) -> None:
    feed = (await upgraded.service.http.get("/s2s/events?limit=200")).json()["items"]
    assert feed[: len(upgraded.was["events"])] == upgraded.was["events"]


async def test_contact_of_the_release_signs_in_to_a_new_channel(upgraded: Upgraded) -> None:
    service, before = upgraded.service, upgraded.was["conversations"][-1]
    channel = await make_channel(service)
    assert [each["id"] for each in (await service.http.get("/channels")).json()["items"]] == [channel["id"]]
    async with Browser(service, channel) as browser:
        assert (await browser.start(signed(channel, before["contact"]["userId"]))).status_code == 200
        listed = (await browser.call("GET", "/conversations")).json()["items"]
        assert before["id"] in {each["id"] for each in listed}
        path = f"/conversations/{before['id']}/messages"
        message = {"text": "after the upgrade", "clientId": "m1"}
        first, again = [await browser.call("POST", path, json=message) for _ in range(2)]
        assert (first.status_code, again.json()) == (200, first.json())
        begun = {"clientId": "c1", "message": {"text": "another one", "clientId": "m1"}}
        made = await browser.call("POST", "/conversations", json=begun)
        assert (made.status_code, made.json()["channelId"]) == (200, channel["id"])


async def test_endpoint_delivers_with_its_secret_and_keeps_its_version_of_events(upgraded: Upgraded) -> None:
    before = upgraded.was["endpoint"]
    path = f"/s2s/webhooks/{before['id']}"
    async with receiving() as receiver:
        changed = (await upgraded.service.http.patch(path, json={"url": receiver.url})).json()
        assert changed["apiVersion"] == "2026-11-01"
        await upgraded.service.say(upgraded.was["conversations"][-1], "after the upgrade")
        await receiver.wait(1)
    request = receiver.requests[-1]
    event = stripe.Webhook.construct_event(
        request.body, request.headers["Service-Signature"], before["secret"]
    )
    assert Webhook(before["secret"]).verify(request.body, request.headers)["id"] == event["id"]
    assert json.loads(request.body)["sequence"] == upgraded.was["conversations"][-1]["sequence"] + 1


async def test_repeated_request_gets_the_answer_of_the_release(upgraded: Upgraded) -> None:
    body, made = opening(LAST), upgraded.was["made"]
    answer = await upgraded.service.http.post(
        "/s2s/conversations", json=body, headers={"Idempotency-Key": "once"}
    )
    assert answer.headers["Idempotent-Replayed"] == "true", answer.text
    assert covers(answer.json(), made)


async def test_upgrade_leaves_a_copy_and_records_its_program(upgraded: Upgraded) -> None:
    pending = [each for each in SCRIPTS if each not in upgraded.migrations]
    copies = [*(upgraded.directory / "backups").glob("*")]
    if not pending:  # the release is the present program
        assert copies == []
        return
    (copy,) = copies
    assert copy.name.endswith(f"-before-{pending[0]}.sqlite3")
    with closing(sqlite3.connect(copy)) as connection:
        assert [*applying_programs(connection)] == upgraded.migrations
        (count,) = connection.execute("SELECT count(*) FROM conversations").fetchone()
    assert count == len(upgraded.was["conversations"])
    with closing(sqlite3.connect(upgraded.directory / FILE_NAME)) as connection:
        programs = applying_programs(connection)
    assert {programs[each] for each in pending} == {version()}


async def test_upgraded_data_has_no_problems(upgraded: Upgraded) -> None:
    secrets = Secrets((upgraded.directory / "secret").read_text().strip())
    assert check(upgraded.directory, secrets, contents=True).problems == []
