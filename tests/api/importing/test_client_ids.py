"""Client ids and channels of an import: kept, recognised when a client repeats its message, and unique."""

from __future__ import annotations

from tests.api.importing.test_imports import problems, told
from tests.support.api.customers import make_channel
from tests.support.api.import_lines import bring, conversation, found, message, messages_of
from tests.support.api.service import Service


async def test_client_ids_and_channels_are_imported(service: Service) -> None:
    channel = await make_channel(service)
    thread = conversation("z-1", channelId=channel["id"], clientId="thread-1")
    first = message("z-1", 0, clientId="m-1")
    await bring(service.http, thread, first, message("z-1", 1), message("z-1", 2, clientId="m-2"))
    state = await found(service.http, "z-1")
    assert (state["channelId"], state["clientId"]) == (channel["id"], "thread-1")
    shown = [each.get("clientId") for each in await messages_of(service.http, state["id"])]
    assert shown == ["m-1", None, "m-2"]
    again = await bring(service.http, thread, first)
    assert (again["imported"], again["refused"]) == ({"conversations": 0, "messages": 0}, 0)
    assert problems(service.directory) == []


async def test_client_id_that_is_taken_is_refused_or_left_out(service: Service) -> None:
    await bring(service.http, conversation("z-1", clientId="thread-1"), message("z-1", 0, clientId="m-1"))
    report = await bring(
        service.http,
        message("z-1", 2, clientId="m-1"),
        message("z-1", 1, clientId="m-3"),
        message("z-1", 4, clientId="a b"),
        conversation("z-2", clientId="thread-1", channelId="chn_00000000000000000000000000"),
        message("z-2", 0, clientId="m-1"),
        message("z-2", 2, clientId="m-1"),
    )
    assert told(report) == {
        1: [("/clientId", "conflict")],
        2: [("/clientId", "not_allowed")],
        3: [("/clientId", "invalid")],
        6: [("/clientId", "conflict")],
    }
    state = await found(service.http, "z-2")
    assert "clientId" not in state
    assert "channelId" not in state
    assert len(await messages_of(service.http, state["id"])) == 1
