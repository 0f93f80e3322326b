"""The receivers of webhooks: their verdict on every vector, and real deliveries of a real service."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from deskwire.engine.webhooks.signature import sign
from tests.examples.languages import Language
from tests.examples.running import Example, listening, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.root import ROOT
from tests.support.sockets.server_process import free_port

pytestmark = pytest.mark.long

EXAMPLE = "verify"
FILE = ROOT / "docs/signature-vectors.json"


def test_every_language_gives_the_published_verdict_on_every_vector(at_hand: Language) -> None:
    vectors: list[dict[str, Any]] = json.loads(FILE.read_text())
    command = [*at_hand.command("vectors"), str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    said = dict(zip((each["name"] for each in vectors), json.loads(done.stdout), strict=True))
    assert said == {each["name"]: each["valid"] for each in vectors}


@dataclass
class Stage:
    """A receiver that is registered with a service.

    Args:
        port: where the receiver listens.
    """

    example: Example
    port: int
    endpoint: dict[str, Any]
    inbox: Path

    def stored(self) -> dict[str, Any]:
        """Return the events in the inbox by their ids; nothing else is left there."""
        found = {path.stem: json.loads(path.read_bytes()) for path in self.inbox.glob("evt_*.json")}
        assert len(list(self.inbox.iterdir())) == len(found)
        return found

    async def post(self, body: bytes, signature: str) -> int:
        """Post to the receiver as anybody can; return the status."""
        async with httpx.AsyncClient(trust_env=False) as client:
            headers = {"Service-Signature": signature}
            answer = await client.post(f"http://127.0.0.1:{self.port}/", content=body, headers=headers)
            return answer.status_code


@asynccontextmanager
async def receiving(
    language: Language, api: httpx.AsyncClient, directory: Path, secrets: str = "{}"
) -> AsyncIterator[Stage]:
    """Yield a receiver of all events; `secrets` says how the secret stands among others."""
    port = free_port()
    answer = await api.post("/s2s/webhooks", json={"url": f"http://127.0.0.1:{port}/"})
    assert answer.status_code == 200, answer.text
    endpoint = answer.json()
    inbox = directory / "inbox"
    environ = {"WEBHOOK_SECRET": secrets.format(endpoint["secret"]), "INBOX": str(inbox)}
    async with running(language.receiver(port), directory, environ) as example:
        await listening(port)
        yield Stage(example, port, endpoint, inbox)


async def conversation(api: httpx.AsyncClient, text: str) -> dict[str, Any]:
    body = {"contact": {"userId": "u1", "name": "Ada"}, "message": {"text": text}}
    answer = await api.post("/s2s/conversations", json=body)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_a_receiver_works_on_each_signed_event_once_and_gets_through_a_rotation(
    at_hand: Language, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    async with receiving(at_hand, api, tmp_path, "whsec_another, {}") as stage:
        await conversation(api, "Grüße \N{EN DASH} \N{WAVING HAND SIGN}")
        lines = await stage.example.until(2, "verified")
        assert [line.split()[:3] for line in sorted(lines)] == [
            ["verified", "conversation.created", "1"],
            ["verified", "message.created", "2"],
        ]
        events = {each["id"]: each for each in (await api.get("/s2s/events")).json()["items"]}
        assert {line.split()[3] for line in lines} == events.keys()
        assert stage.stored() == events
        await sent_twice(api, stage)
        await refuses(stage)
        await stage.example.until(3, "verified")
        rotated = await api.post(f"/s2s/webhooks/{stage.endpoint['id']}/rotate-secret")
        assert rotated.status_code == 200, rotated.text
        await conversation(api, "while both secrets sign")
        await stage.example.until(5, "verified")


async def sent_twice(api: httpx.AsyncClient, stage: Stage) -> None:
    """Have the service send a delivered event again: it is known."""
    path = f"/s2s/webhooks/{stage.endpoint['id']}/deliveries"
    delivered = (await api.get(path)).json()["items"]
    with trio.fail_after(HANG_TIMEOUT_S):
        while {each["status"] for each in delivered} != {"delivered"}:
            await trio.sleep(0.05)  # poll: the log has to be read to find a response
            delivered = (await api.get(path)).json()["items"]
    again = await api.post(f"/s2s/deliveries/{delivered[0]['id']}/redeliver")
    assert again.status_code == 200, again.text
    assert await stage.example.until(1, "again") == [f"again {delivered[0]['eventId']}"]
    assert len(stage.example.with_words("verified")) == 2


async def refuses(stage: Stage) -> None:
    """Post unsigned bodies, which leave no trace, and then the same with a signature."""
    body = next(stage.inbox.glob("evt_*.json")).read_bytes().replace(b'"evt_', b'"evt_X')
    now, secret = int(time.time()), stage.endpoint["secret"]
    good, outside = sign(secret, now, body), b'{"id": "../evt_1"}'
    assert await stage.post(body, "") == 400
    assert await stage.post(body, f"t={now},v1={good}x") == 400
    assert await stage.post(body + b" ", f"t={now},v1={good}") == 400
    assert await stage.post(body, f"t={now - 400},v1={sign(secret, now - 400, body)}") == 400
    assert await stage.post(outside, f"t={now},v1={sign(secret, now, outside)}") == 400
    assert len(list(stage.inbox.iterdir())) == 2
    assert await stage.post(body, f"t={now},v0=abc,v1=00,v1={good}") == 204
