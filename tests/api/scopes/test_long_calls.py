"""Calls that go on for a while end with the machine credential that makes them (ADR 70)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest
import trio

from tests.api.accounts.test_machine_credentials import code
from tests.api.scopes.test_reach import IMPORTS, lines
from tests.support.api.machines import credentials_of, make, showing
from tests.support.api.service import Service
from tests.support.deadlines import HANG_TIMEOUT_S

AT = "2024-01-01T00:00:00Z"
START = {"type": "conversation", "externalId": "c", "contact": {"userId": "ada"}, "createdAt": AT}


def said(number: int, text: str) -> dict[str, Any]:
    names = {"externalId": f"m{number}", "conversation": "c", "author": {"type": "contact"}}
    return {"type": "message", **names, "text": text, "createdAt": AT}


@pytest.mark.parametrize("end", ["revoked", "weaker"])
async def test_long_poll_is_refused_if_its_credential_ends(service: Service, end: str) -> None:
    machine = await make(service, ("conversations.read",))
    one = f"{credentials_of(service)}/{machine['id']}"
    answers: list[httpx.Response] = []

    async def wait() -> None:
        async with showing(service, machine["secret"]) as http:
            answers.append(await http.get("/s2s/events", params={"wait": "20"}))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        with trio.fail_after(HANG_TIMEOUT_S):
            while not (await service.dashboard.get(one)).json()["lastUsedAt"]:  # noqa: ASYNC110
                await trio.sleep(0.02)  # poll: there is no notification
        await trio.sleep(0.1)
        if end == "revoked":
            await service.dashboard.delete(one)
        else:
            await service.dashboard.patch(one, json={"permissions": []})
        await service.create("ada", message={"text": "mk-secret"})
    (answer,) = answers
    assert code(answer)[0] == (401 if end == "revoked" else 403)
    assert "mk-secret" not in answer.text


async def test_an_export_that_is_under_way_is_cut_off(service: Service) -> None:
    for part in range(8):
        texts = [said(part * 50 + number, "x" * 20_000) for number in range(50)]
        assert (await lines(service.http, START, *texts)).json()["refused"] == 0
    machine = await make(service, ("conversations.read",))
    size, whole = 0, True
    async with (
        showing(service, machine["secret"]) as http,
        http.stream("GET", "/s2s/export/messages") as sent,
    ):
        try:
            async for piece in sent.aiter_raw():
                if not size:
                    await service.dashboard.delete(f"{credentials_of(service)}/{machine['id']}")
                size += len(piece)
        except (httpx.RemoteProtocolError, httpx.ReadError):
            whole = False
    assert not whole
    assert 0 < size < 8_000_000


async def test_an_import_that_is_under_way_stores_nothing_more(service: Service) -> None:
    machine = await make(service, IMPORTS)

    async def body() -> AsyncIterator[bytes]:
        yield orjson.dumps(START) + b"\n"
        await service.dashboard.delete(f"{credentials_of(service)}/{machine['id']}")
        yield orjson.dumps(said(1, "Hi")) + b"\n"

    headers = {"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {machine['secret']}"}
    async with httpx.AsyncClient(base_url=service.url) as http:
        answer = await http.post("/v3/s2s/import", content=body(), headers=headers)
    assert code(answer) == (401, "revoked_machine_credential")
    assert (await service.http.get("/s2s/conversations")).json()["items"] == []


async def test_a_file_of_another_message_is_not_fetched_by_attaching_it(service: Service) -> None:
    upload = (await service.http.post("/uploads", files={"file": ("a.txt", b"mk-secret")})).json()
    conversation = await service.create("ada")
    await service.say(conversation, "Here", attachments=[upload["id"]])
    path = f"/s2s/conversations/{conversation['id']}/messages"
    body = {"text": "Hi", "attachments": [upload["id"]]}
    async with showing(service, (await make(service, ("conversations.reply",)))["secret"]) as http:
        refused = await http.post(path, json=body)
        assert code(refused) == (403, "permission_denied")
        own = (await http.post("/uploads", files={"file": ("b.txt", b"own")})).json()
        sent = await http.post(path, json={"text": "Hi", "attachments": [own["id"]]})
        assert sent.status_code == 200, sent.text
    both = ("conversations.read", "conversations.reply")
    async with showing(service, (await make(service, both))["secret"]) as http:
        assert (await http.post(path, json=body)).status_code == 200
