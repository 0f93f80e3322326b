"""The bridge to Slack: both directions, each failure between them, and restarts, against a real service."""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
import trio

from tests.examples.languages import EXAMPLES
from tests.examples.running import Example, listening, running
from tests.examples.slack import CHANNEL, SIGNING_SECRET, TOKEN, Slack, reply, send, slack
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import answering
from tests.support.sockets.server_process import LOOK_S, Server, free_port

pytestmark = pytest.mark.long
FILE = EXAMPLES / "slack_bridge.py"


@dataclass(eq=False)
class Stage:
    """The bridge between a service and Slack."""

    server: Server
    api: httpx.AsyncClient
    slack: Slack
    directory: Path
    port: int

    @asynccontextmanager
    async def bridge(self, **environ: str) -> AsyncIterator[Example]:
        """Run the bridge; at the end it is killed."""
        settings = {
            "BASE": self.server.url,
            "KEY": self.server.demo()["serverKey"],
            "SLACK_API": self.slack.url,
            "SLACK_TOKEN": TOKEN,
            "SLACK_SIGNING_SECRET": SIGNING_SECRET,
            "SLACK_CHANNEL": CHANNEL,
        }
        command = [sys.executable, str(FILE), "bridge.db", str(self.port)]
        async with running(command, self.directory, settings | environ) as example:
            await listening(self.port)
            yield example

    async def begin(self, text: str = "Hello?", **fields: Any) -> str:
        """Start a conversation of a customer; return its id."""
        body = {"contact": {"userId": "u1", "name": "Grace"}, "message": {"text": text}, **fields}
        answer = await self.api.post("/s2s/conversations", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])

    async def messages(self, conversation: str, number: int) -> list[dict[str, Any]]:
        """Wait until a conversation has this number of messages; return them."""
        with trio.fail_after(HANG_TIMEOUT_S):
            while True:
                found: list[dict[str, Any]] = (
                    await self.api.get(f"/s2s/conversations/{conversation}/messages")
                ).json()["items"]
                if len(found) >= number:
                    assert len(found) == number
                    return found
                await trio.sleep(LOOK_S)  # poll: there is no notification

    async def placed(self) -> None:
        """Wait until the bridge has its place in the feed."""
        with trio.fail_after(HANG_TIMEOUT_S):
            while True:
                if self.rows("SELECT event FROM place"):
                    return
                await trio.sleep(LOOK_S)  # poll: there is no notification

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return rows of the bridge's database; none before it has one."""
        try:
            with closing(
                sqlite3.connect(f"file:{self.directory}/bridge.db?mode=ro", uri=True, timeout=30)
            ) as db:
                return db.execute(statement).fetchall()
        except sqlite3.OperationalError:
            return []

    async def handled(self, *keys: str) -> None:
        """Wait until these replies are handled."""
        with trio.fail_after(HANG_TIMEOUT_S):
            while True:
                done = {key for (key,) in self.rows("SELECT key FROM inbox WHERE message IS NOT NULL")}
                if {f"{CHANNEL}-{key}" for key in keys} <= done:
                    return
                await trio.sleep(LOOK_S)  # poll: there is no notification


@pytest.fixture
async def stage(server: Server, api: httpx.AsyncClient, tmp_path: Path) -> AsyncIterator[Stage]:
    async with slack() as channel:
        yield Stage(server, api, channel, tmp_path, free_port())


async def test_conversation_is_posted_and_a_reply_in_its_thread_reaches_the_customer(stage: Stage) -> None:
    before = await stage.begin("From before the bridge")
    async with stage.bridge():
        await stage.placed()
        conversation = await stage.begin("Where is <my> order?", title="Order A & B")
        await stage.slack.until(2)
        thread = stage.slack.thread("Grace: Order A &amp; B")
        assert f"/c/{conversation}|Open in Deskwire>" in thread["text"]
        assert stage.slack.replies(thread) == ["*Grace*: Where is &lt;my&gt; order?"]
        answer = await send(stage.port, reply(thread, "It &lt;left&gt; <https://x.example|today>", 1))
        assert answer.status_code == 200
        _, sent = await stage.messages(conversation, 2)
        assert sent["text"] == "It <left> today (https://x.example)"
        assert sent["author"] == {"type": "agent", "id": None, "name": "Ada Lovelace"}
        await stage.api.post(f"/s2s/conversations/{conversation}/close")
        await stage.slack.until(3)
        assert stage.slack.replies(thread)[1:] == ["_Closed_"]
    assert len((await stage.api.get(f"/s2s/conversations/{before}/messages")).json()["items"]) == 1


async def test_request_without_slacks_signature_is_refused(stage: Stage) -> None:
    async with stage.bridge():
        await stage.placed()
        conversation = await stage.begin()
        await stage.slack.until(2)
        event = reply(stage.slack.thread("Grace"), "Forged", 1)
        assert (await send(stage.port, event, secret="another")).status_code == 401
        assert (await send(stage.port, event, late_s=301)).status_code == 401
        assert (await send(stage.port, event, late_s=-301)).status_code == 401
        async with httpx.AsyncClient(trust_env=False) as client:
            url = f"http://127.0.0.1:{stage.port}/slack/events"
            assert (await client.post(url, json=event)).status_code == 401
            assert (await client.post(url.replace("events", "other"), json=event)).status_code == 401
        assert stage.rows("SELECT * FROM inbox") == []
        challenge = await send(stage.port, {"type": "url_verification", "challenge": "3eZbrw1a"})
        assert (challenge.status_code, challenge.text) == (200, "3eZbrw1a")
        await stage.messages(conversation, 1)


async def test_reply_is_sent_once_although_slack_repeats_it(stage: Stage) -> None:
    async with stage.bridge() as bridge:
        await stage.placed()
        conversation = await stage.begin()
        await stage.slack.until(2)
        thread = stage.slack.thread("Grace")
        for retry in range(4):
            assert (await send(stage.port, reply(thread, "Once", 1), retry=retry)).status_code == 200
        await bridge.until(1, "sent", "msg_")
        assert (await send(stage.port, reply(thread, "Once", 1), retry=1)).status_code == 200
        await send(stage.port, reply(thread, "Twice", 2))
        texts = [each["text"] for each in await stage.messages(conversation, 3)]
        assert texts == ["Hello?", "Once", "Twice"]


async def test_other_messages_of_the_channel_are_not_sent(stage: Stage) -> None:
    async with stage.bridge():
        await stage.placed()
        conversation = await stage.begin()
        await stage.slack.until(2)
        thread = stage.slack.thread("Grace")
        unrelated = [
            reply(thread, "By a bot", 1, bot_id="B1"),
            reply(thread, "An edit", 2, subtype="message_changed"),
            reply(thread, "Elsewhere", 3, channel="C0OTHER"),
            reply({"ts": "1.1"}, "In another thread", 4),
            reply(thread, "At the top", 5, thread_ts=None),
            {"type": "event_callback", "event": {"type": "reaction_added"}},
        ]
        for each in unrelated:
            assert (await send(stage.port, each)).status_code == 200
        await send(stage.port, reply(thread, "For the customer", 6))
        await stage.handled("1800000000.000004", "1800000000.000006")
        assert [each["text"] for each in await stage.messages(conversation, 2)] == [
            "Hello?",
            "For the customer",
        ]


async def test_post_whose_response_is_lost_is_found_and_not_repeated(stage: Stage) -> None:
    stage.slack.lost = 2
    async with stage.bridge() as bridge:
        await stage.placed()
        await stage.begin()
        await bridge.until(2, "posted")
    assert stage.slack.calls.count("chat.postMessage") == 2
    assert {"conversations.history", "conversations.replies"} <= set(stage.slack.calls)
    assert len(stage.slack.messages) == 2


async def test_crash_between_slack_and_the_database_repeats_nothing(stage: Stage) -> None:
    """The connection ends after the message is stored; the bridge is killed before it can look for it."""
    stage.slack.lost = 1
    async with stage.bridge():
        await stage.placed()
        for number in range(4):
            await stage.begin(f"Number {number}", title=f"Order {number}")
        await stage.slack.until(1)
    async with stage.bridge() as bridge:
        await bridge.until(8, "posted")
    threads = [each for each in stage.slack.messages if "thread_ts" not in each]
    assert len(stage.slack.messages) == 8
    assert [stage.slack.replies(each) for each in threads] == [[f"*Grace*: Number {n}"] for n in range(4)]


async def test_rate_limit_and_outage_of_slack_delay_posts_and_lose_none(stage: Stage) -> None:
    limited = answering(
        "429 Too Many Requests", b'{"ok": false, "error": "ratelimited"}', b"Retry-After: 1\r\n"
    )
    refused = answering("200 OK", b'{"ok": false, "error": "not_in_channel"}')
    stage.slack.fail("chat.postMessage", limited, answering("503 Service Unavailable"), refused)
    async with stage.bridge() as bridge:
        await stage.placed()
        await stage.begin()
        await bridge.until(2, "posted")
        assert bridge.with_words("trying again", "not_in_channel")
    assert len(stage.slack.messages) == 2


async def test_reply_during_an_outage_of_deskwire_arrives_once_after_it(stage: Stage) -> None:
    async with stage.bridge() as bridge:
        await stage.placed()
        conversation = await stage.begin()
        await stage.slack.until(2)
        thread = stage.slack.thread("Grace")
        await stage.server.kill()
        assert (await send(stage.port, reply(thread, "In the outage", 1))).status_code == 200
        await bridge.until(1, "trying again")
        await stage.server.start()
        await bridge.until(1, "sent", "msg_")
        assert [each["text"] for each in await stage.messages(conversation, 2)] == ["Hello?", "In the outage"]
        assert stage.slack.replies(thread) == ["*Grace*: Hello?"]


async def test_repeated_reply_has_the_same_author_after_a_restart(stage: Stage) -> None:
    """Another body under the same Idempotency-Key would be refused."""
    async with stage.bridge() as bridge:
        await stage.placed()
        conversation = await stage.begin()
        await stage.slack.until(2)
        thread = stage.slack.thread("Grace")
        await stage.server.kill()
        await send(stage.port, reply(thread, "Hello", 1))
        await bridge.until(2, "trying again")
    assert "users.info" in stage.slack.calls
    stage.slack.fail("users.info", answering("200 OK", b'{"ok": false, "error": "user_not_found"}'))
    await stage.server.start()
    async with stage.bridge():
        _, sent = await stage.messages(conversation, 2)
        assert sent["author"]["name"] == "Ada Lovelace"


async def test_restart_continues_and_shows_events_from_the_meantime(stage: Stage) -> None:
    async with stage.bridge():
        await stage.placed()
        conversation = await stage.begin()
        await stage.slack.until(2)
        thread = stage.slack.thread("Grace")
    body = {"text": "Any news?"}
    await stage.api.post(f"/s2s/conversations/{conversation}/messages", json=body)
    async with stage.bridge():
        await stage.slack.until(3)
        assert stage.slack.replies(thread) == ["*Grace*: Hello?", "*Grace*: Any news?"]
        await send(stage.port, reply(thread, "Soon", 1))
        await stage.messages(conversation, 3)
    async with stage.bridge():
        await stage.api.post(f"/s2s/conversations/{conversation}/close")
        await stage.slack.until(4)
        assert stage.slack.replies(thread)[2:] == ["_Closed_"]


async def test_refused_reply_is_explained_in_its_thread(stage: Stage) -> None:
    async with stage.bridge():
        await stage.placed()
        conversation = await stage.begin()
        await stage.slack.until(2)
        thread = stage.slack.thread("Grace")
        await send(stage.port, reply(thread, "x" * 20_001, 1))
        await send(stage.port, reply(thread, "", 2, subtype="file_share", files=[{"name": "label.png"}]))
        await send(stage.port, reply(thread, "Fine", 3))
        await stage.messages(conversation, 2)
        assert [each.partition(":")[0] for each in stage.slack.replies(thread)[1:]] == [
            "Not sent to the customer",
            "Files are not sent to the customer",
        ]


async def test_thread_that_people_deleted_is_started_again(stage: Stage) -> None:
    gone = answering("200 OK", b'{"ok": false, "error": "thread_not_found"}')
    async with stage.bridge() as bridge:
        await stage.placed()
        conversation = await stage.begin()
        await stage.slack.until(2)
        old = stage.slack.thread("Grace")
        stage.slack.messages.clear()
        stage.slack.fail("chat.postMessage", gone)
        await send(stage.port, reply(old, "x" * 20_001, 1))
        await bridge.until(1, "refused-", "Not sent to the customer")
        stage.slack.fail("chat.postMessage", gone)
        await stage.api.post(f"/s2s/conversations/{conversation}/messages", json={"text": "Any news?"})
        await stage.slack.until(2)
        assert stage.slack.replies(stage.slack.thread("Grace")) == ["*Grace*: Any news?"]


async def test_deleted_conversation_is_deleted_from_slack(stage: Stage) -> None:
    async with stage.bridge():
        await stage.placed()
        conversation = await stage.begin()
        await stage.slack.until(2)
        await stage.api.delete(f"/s2s/conversations/{conversation}")
        with trio.fail_after(HANG_TIMEOUT_S):
            while stage.slack.messages:
                await stage.slack.changed.wait()
        await stage.begin("Another")
        await stage.slack.until(2)
        assert len(stage.rows("SELECT * FROM threads")) == 1


async def test_place_that_is_no_longer_stored_is_reported(stage: Stage) -> None:
    async with stage.bridge():
        await stage.placed()
    with closing(sqlite3.connect(stage.directory / "bridge.db")) as db, db:
        db.execute("UPDATE place SET event = 'evt_01AAAAAAAAAAAAAAAAAAAAAAAA'")
    async with stage.bridge() as bridge:
        await bridge.until(1, "events are missing")
        await stage.begin()
        await stage.slack.until(2)


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The bridge as a module."""
    for name in ("BASE", "KEY", "SLACK_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_CHANNEL"):
        monkeypatch.setenv(name, "x")
    spec = importlib.util.spec_from_file_location("slack_bridge", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_signature_is_that_of_slacks_documentation(example: ModuleType) -> None:
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name="
        b"foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2F"
        b"hooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015."
        b"47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    headers = {
        "X-Slack-Request-Timestamp": "1531420618",
        "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    }
    secret = "8f742231b10e8888abcd99yyyzzz85a5"
    assert example.signed(secret, headers, body, now=1531420618)
    assert example.signed(secret, headers, body, now=1531420618 + 300)
    assert not example.signed(secret, headers, body, now=1531420618 + 301)
    assert not example.signed(secret, headers, body + b"x", now=1531420618)
    assert not example.signed(secret, {**headers, "X-Slack-Signature": "é"}, body, now=1531420618)
    assert not example.signed(secret, {**headers, "X-Slack-Request-Timestamp": "²"}, body, now=1531420618)
    assert not example.signed(secret, {}, body, now=1531420618)
