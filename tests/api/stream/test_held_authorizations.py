"""Requests for authorizations and agents' streams while the database can't be reached (ADR 60)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any, Final

import httpx
import pytest
import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.http.api import pipeline
from deskwire.http.api.admission import HOLD_TIMEOUT_S, Admission
from deskwire.http.resources.stream import consumers
from tests.api.stream.test_revocation import Streams, project_channel
from tests.support.api.agent_stream import Page, page
from tests.support.api.service import Service
from tests.support.deadlines import HANG_TIMEOUT_S, fail_after_idle

_AWAY_S: Final = 1.2
PLACES: Final = {
    "before the credential": (Admission, "check", "out_of_touch"),
    "in the handler": (consumers, "_check_subject", "storage_failed"),
}


@pytest.fixture
async def stack() -> Any:
    async with AsyncExitStack() as stack:
        yield stack


def take_away(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Let calls of the service fail at this point, as without the database."""
    owner, name, code = PLACES[place]

    def refuse(*_: object, **__: object) -> None:
        raise Unavailable("The database is unavailable.", code=code)

    monkeypatch.setattr(owner, name, refuse)


async def authorize(service: Service, socket_id: str, key: str | None = None) -> httpx.Response:
    fields = {"socket_id": socket_id, "channel_name": project_channel(service), "consumerId": "c1"}
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return await service.http.post("/s2s/stream/auth", data=fields, headers=headers)


@pytest.mark.parametrize("place", PLACES)
async def test_authorization_waits_for_the_database(
    place: str, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        take_away(patch, place)
        async with trio.open_nursery() as nursery:
            answers = list[httpx.Response]()

            async def ask() -> None:
                answers.append(await authorize(service, "1.2"))

            nursery.start_soon(ask)
            await trio.sleep(_AWAY_S)  # the duration of the outage
            assert answers == []
            patch.undo()
    (answer,) = answers
    assert (answer.status_code, list(answer.json())) == (200, ["auth"])


@pytest.mark.parametrize("place", PLACES)
async def test_authorization_that_times_out_closes_its_connection_soon(
    place: str, service: Service, stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "HOLD_TIMEOUT_S", 0.5)
    stream = await Streams(service, stack).open(service.demo["serverKey"])
    take_away(monkeypatch, place)
    answer = await authorize(service, stream.socket_id)
    assert (answer.status_code, answer.json()["code"]) == (503, PLACES[place][2])
    assert answer.headers["retry-after"] == "1"
    with trio.fail_after(HANG_TIMEOUT_S):
        received = await stream.peer.message()
    assert received["data"]["code"] == 4100
    assert await stream.peer.close_code() == 4100


async def test_authorization_with_a_wrong_key_ends_nothing(service: Service, stack: AsyncExitStack) -> None:
    stream = await Streams(service, stack).open(service.demo["serverKey"])
    assert (await authorize(service, stream.socket_id, "sk_" + "x" * 43)).status_code == 401
    with trio.move_on_after(1.5) as silence:
        await stream.peer.message()
    assert silence.cancelled_caught


@pytest.mark.parametrize("query", ["&".join(["a=1"] * 101), "socket_id=%FF", ""])
async def test_unreadable_refused_authorization_stays_refused(
    query: str, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "HOLD_TIMEOUT_S", 0.0)
    take_away(monkeypatch, "before the credential")
    answer = await service.http.post(f"/s2s/stream/auth?{query}", content=b"{\xff")
    assert (answer.status_code, answer.json()["code"]) == (503, "out_of_touch")


async def test_other_calls_are_refused_at_once(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    take_away(monkeypatch, "before the credential")
    with fail_after_idle(HOLD_TIMEOUT_S / 2):
        answer = await service.http.get("/s2s/project")
    assert (answer.status_code, answer.json()["code"]) == (503, "out_of_touch")


async def test_agents_stream_waits_for_the_database(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        take_away(patch, "before the credential")
        async with trio.open_nursery() as nursery:
            opened = list[Page]()

            async def follow() -> None:
                async with page(service.dashboard) as stream:
                    opened.append(stream)

            nursery.start_soon(follow)
            await trio.sleep(_AWAY_S)  # the duration of the outage
            assert opened == []
            patch.undo()
    assert opened[0].hello["gap"] is False
