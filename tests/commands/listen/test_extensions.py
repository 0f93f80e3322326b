"""Forwarding events beyond the contract, which come only where they are named."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands.listen.conftest import once, receiving
from tests.support.api.service import Service
from tests.support.sockets.receivers import answering

OK = answering("204 No Content")


async def test_only_named_extensions_are_forwarded_and_as_a_webhook_gets_them(
    service: Service, tmp_path: Path
) -> None:
    named, state = (
        ["ticket.changed", "message.redacted", "contact.changed", "message.created"],
        tmp_path / "state",
    )
    async with receiving(OK) as hooked, receiving(OK) as mine:
        endpoint = await service.http.post("/s2s/webhooks", json={"url": hooked.url, "events": named})
        assert endpoint.status_code == 200
        ticket = (await service.dashboard.post("/tickets", json={"title": "Lost"})).json()
        for value in ("IN_PROGRESS", "DONE"):
            await service.dashboard.patch(f"/tickets/{ticket['id']}", json={"status": value})
        conversation = await service.create()
        message = await service.say(conversation, "4111 1111")
        path = f"/s2s/conversations/{conversation['id']}/messages/{message['id']}/redact"
        assert (await service.http.post(path, json={"text": True})).status_code == 200
        await service.http.patch("/s2s/contacts/u1", json={"tags": ["vip"]})
        await hooked.wait(5)
        events = frozenset(named)
        status, shown = await once(service, mine.url, state, start="beginning", events=events)
        assert status == 0
        bodies = {request.body for request in mine.requests}
        assert len(bodies) == len(mine.requests) == 5
        created = [request for request in hooked.requests if b'"message.created"' in request.body]
        assert bodies - {
            request.body for request in hooked.requests
        } <= {  # sent before the redaction, perhaps
            request.body for request in mine.requests if b'"message.created"' in request.body
        }
        assert len(created) == 1
        statuses = [
            envelope["data"]["ticket"]["status"]
            for request in mine.requests
            if (envelope := json.loads(request.body))["type"] == "ticket.changed"
        ]
        assert statuses == ["IN_PROGRESS", "DONE"]
        mine.requests.clear()
        await service.http.patch("/s2s/contacts/u1", json={"tags": []})
        _, shown = await once(service, mine.url, state, events=events)
        assert shown.results == [("contact.changed", None, "delivered")]
        await service.http.patch("/s2s/contacts/u1", json={"tags": ["vip"]})
        _, shown = await once(service, mine.url, state)
        assert shown.results == []  # not named this time


async def test_cursor_passes_the_contracts_events_while_waiting_for_an_extension(
    service: Service, tmp_path: Path
) -> None:
    events = frozenset({"ticket.created"})
    await service.create()
    last = (await service.events())[-1]
    _, shown = await once(service, None, tmp_path / "state", start="beginning", events=events)
    assert shown.printed == []
    assert shown.notes[-1].endswith(f"The next run continues after {last['id']}.")
    await service.dashboard.post("/tickets", json={"title": "Lost"})
    _, shown = await once(service, None, tmp_path / "state", events=events)
    assert [event.type for event in shown.printed] == ["ticket.created"]
