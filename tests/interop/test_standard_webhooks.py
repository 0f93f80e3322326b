"""The JavaScript verifier of Standard Webhooks, unmodified, on the published vectors and on real deliveries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.api.events.test_channels_agree import receiving, register
from tests.interop.client import HERE
from tests.support.api.service import running

VECTORS: list[dict[str, Any]] = json.loads((HERE.parents[1] / "docs/signature-vectors.json").read_text())

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("node")]


async def verdicts(cases: list[dict[str, Any]]) -> list[bool]:
    """Return the verifier's result for each case."""
    command = ["node", str(HERE / "standard_verifier.mjs")]
    done = await trio.run_process(command, stdin=json.dumps(cases).encode(), capture_stdout=True)
    answer: list[bool] = json.loads(done.stdout)
    return answer


async def test_it_gives_the_published_verdicts() -> None:
    cases = [{**vector, "headers": vector["standard"]} for vector in VECTORS]
    assert await verdicts(cases) == [vector["valid"] for vector in VECTORS]


async def test_it_accepts_deliveries_before_and_in_a_rotation_with_either_secret(tmp_path: Path) -> None:
    async with receiving() as receiver, running(tmp_path) as service:
        endpoint = await register(service, receiver.url)
        conversation = await service.create(message={"text": "Grüße 👋"})
        await receiver.wait(2)
        rotated = (await service.http.post(f"/s2s/webhooks/{endpoint['id']}/rotate-secret")).json()
        await service.say(conversation, "Zwei Schlüssel")
        await receiver.wait(3)
    cases = [
        {
            "body": request.body.decode(),
            "headers": request.headers,
            "secret": secret,
            "now": int(request.headers["webhook-timestamp"]),
        }
        for request in receiver.requests
        for secret in (endpoint["secret"], rotated["secret"])
    ]
    assert await verdicts(cases) == [True, False, True, False, True, True]
