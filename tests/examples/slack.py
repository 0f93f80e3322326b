"""A stand-in for Slack's Web API and its Events API, with the failures of a network. Slack itself can't run here."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final
from urllib.parse import parse_qs

import httpx
import trio

from tests.support.sockets.receivers import Behaviour, Receiver, Request, answering

CHANNEL: Final = "C0SUPPORT"
TOKEN: Final = "xoxb-of-the-test"
SIGNING_SECRET: Final = "the signing secret of the app"
PAGE: Final = 2
"""Messages in a page of a history: few, so that the bridge has to follow cursors."""


@dataclass(eq=False)
class Slack:
    """A channel, and the calls of an app."""

    receiver: Receiver = field(default_factory=lambda: Receiver(answering("500 Internal Server Error")))
    messages: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    failures: dict[str, list[Behaviour]] = field(default_factory=dict)
    lost: int = 0
    changed: trio.Event = field(default_factory=trio.Event)
    _ids: count[int] = field(default_factory=lambda: count(1))

    @property
    def url(self) -> str:
        """The address of the Web API."""
        return f"http://127.0.0.1:{self.receiver.port}/api"

    def thread(self, text: str) -> dict[str, Any]:
        """Return the only message at the top of the channel that contains a text."""
        (found,) = [each for each in self.messages if "thread_ts" not in each and text in each["text"]]
        return found

    def replies(self, thread: dict[str, Any]) -> list[str]:
        """Return the texts in a thread."""
        return [each["text"] for each in self.messages if each.get("thread_ts") == thread["ts"]]

    async def until(self, number: int) -> list[dict[str, Any]]:
        """Wait until the channel has this number of messages; return them."""
        with trio.fail_after(60):
            while len(self.messages) < number:
                await self.changed.wait()
        assert len(self.messages) == number
        return self.messages

    def fail(self, method: str, *behaviours: Behaviour) -> None:
        """Answer the next calls of a method so, instead of carrying them out."""
        self.failures.setdefault(method, []).extend(behaviours)

    async def answer(self, stream: trio.abc.Stream, request: Request) -> None:
        """Carry out a call. A lost one is carried out, and its connection ends without a response."""
        method = request.path.removeprefix("/api/")
        self.calls.append(method)
        if waiting := self.failures.get(method):
            return await waiting.pop(0)(stream, request)
        fields = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        answer = self._carry_out(method, fields)
        self._notify()
        if self.lost and method == "chat.postMessage":
            self.lost -= 1
            return await stream.aclose()
        body = json.dumps(answer).encode()
        await answering("200 OK", body, b"Content-Type: application/json\r\n")(stream, request)

    def _notify(self) -> None:
        self.changed.set()
        self.changed = trio.Event()

    def _carry_out(self, method: str, fields: dict[str, str]) -> dict[str, Any]:
        if method == "users.info":
            return {"ok": True, "user": {"profile": {"real_name": "Ada Lovelace"}}}
        if fields["channel"] != CHANNEL:
            return {"ok": False, "error": "channel_not_found"}
        if method == "chat.postMessage":
            message = {
                "ts": f"{time.time():.0f}.{next(self._ids):06}",
                "text": fields["text"],
                "bot_id": "B1",
            }
            message |= {"metadata": json.loads(fields["metadata"])}
            self.messages.append(
                message | ({"thread_ts": fields["thread_ts"]} if "thread_ts" in fields else {})
            )
            return {"ok": True, "ts": message["ts"]}
        if method == "chat.delete":
            kept = [each for each in self.messages if each["ts"] != fields["ts"]]
            found = len(kept) < len(self.messages)
            self.messages = kept
            return {"ok": True} if found else {"ok": False, "error": "message_not_found"}
        return self._history(fields)

    def _history(self, fields: dict[str, str]) -> dict[str, Any]:
        thread = fields.get("ts")
        found = [
            {
                name: value
                for name, value in each.items()
                if name != "metadata" or "include_all_metadata" in fields
            }
            for each in self.messages
            if each.get("thread_ts") == thread or (thread and each["ts"] == thread)
            if float(each["ts"]) >= float(fields["oldest"])
        ]
        start = int(fields.get("cursor") or 0)
        cursor = str(start + PAGE) if start + PAGE < len(found) else ""
        page = found[start : start + PAGE]
        return {"ok": True, "messages": page, "response_metadata": {"next_cursor": cursor}}


@asynccontextmanager
async def slack() -> AsyncIterator[Slack]:
    """Yield Slack, which listens on loopback."""
    made = Slack()
    made.receiver.behaviour = made.answer
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        made.receiver.port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, made.receiver.serve, [listener])
        yield made
        nursery.cancel_scope.cancel()


def reply(thread: dict[str, Any], text: str, number: int, **more: Any) -> dict[str, Any]:
    """Return the event of a person's reply in a thread."""
    message = {"type": "message", "channel": CHANNEL, "thread_ts": thread["ts"], "user": "U1", "text": text}
    message |= {"ts": f"1800000000.{number:06}", **more}
    return {"type": "event_callback", "event_id": f"Ev{number}", "event": message}


async def send(
    port: int, body: dict[str, Any], *, secret: str = SIGNING_SECRET, late_s: int = 0, retry: int = 0
) -> httpx.Response:
    """Send an event to the Request URL, signed as Slack signs it."""
    sent, at = json.dumps(body).encode(), str(int(time.time()) - late_s)
    signature = hmac.new(secret.encode(), f"v0:{at}:".encode() + sent, hashlib.sha256).hexdigest()
    headers = {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": f"v0={signature}"}
    headers |= {"X-Slack-Retry-Num": str(retry), "X-Slack-Retry-Reason": "http_timeout"} if retry else {}
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.post(f"http://127.0.0.1:{port}/slack/events", content=sent, headers=headers)
