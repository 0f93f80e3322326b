"""Streams end with the machine credential that authorized them: revoked, rotated or expired (ADR 70)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
import trio

from tests.api.stream.test_revocation import Streams, project_channel
from tests.support.api.machines import credentials_of, make
from tests.support.api.service import Service
from tests.support.deadlines import HANG_TIMEOUT_S


@pytest.fixture
async def stack() -> Any:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def streams(service: Service, stack: AsyncExitStack) -> Streams:
    return Streams(service, stack)


def in_seconds(seconds: float) -> str:
    then = datetime.now(UTC) + timedelta(seconds=seconds)
    return then.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def test_a_stream_ends_within_a_second_of_its_credentials_revocation(
    service: Service, streams: Streams
) -> None:
    made = await make(service, ("conversations.read",))
    own, other = await streams.open(made["secret"]), await streams.open(service.demo["serverKey"])
    await service.create("u1")
    await own.subscribe(project_channel(service))
    await other.subscribe("private-contact-u1")
    assert (await service.dashboard.delete(f"{credentials_of(service)}/{made['id']}")).status_code == 200
    code, message, closed = await own.ended()
    assert (code, closed) == (4009, 4009)
    assert "machine credential" in message
    await service.create("u1")
    assert (await other.peer.message())["event"] == "conversation.created"


async def test_stream_ends_when_its_credential_expires_without_any_call(
    service: Service, streams: Streams
) -> None:
    made = await make(service, ("conversations.read",), expiresAt=in_seconds(2))
    stream = await streams.open(made["secret"])
    await stream.subscribe(project_channel(service))
    with trio.fail_after(HANG_TIMEOUT_S):
        received = await stream.peer.message()
    assert (received["event"], received["data"]["code"]) == ("pusher:error", 4009)
    assert "expired" in received["data"]["message"]
    assert datetime.now(UTC) >= datetime.fromisoformat(made["expiresAt"])


async def test_earlier_expiry_ends_the_stream_sooner(service: Service, streams: Streams) -> None:
    made = await make(service, ("conversations.read",), expiresAt=in_seconds(3600))
    stream = await streams.open(made["secret"])
    await stream.subscribe(project_channel(service))
    one = f"{credentials_of(service)}/{made['id']}"
    assert (await service.dashboard.patch(one, json={"expiresAt": in_seconds(1)})).status_code == 200
    with trio.fail_after(HANG_TIMEOUT_S):
        assert (await stream.peer.message())["data"]["code"] == 4009


async def test_stream_of_the_former_secret_ends_with_the_overlap(service: Service, streams: Streams) -> None:
    made = await make(service, ("conversations.read",))
    old = await streams.open(made["secret"])
    await old.subscribe(project_channel(service), "c1")
    rotate = f"{credentials_of(service)}/{made['id']}/rotate"
    rotated = (await service.dashboard.post(rotate, json={"overlapSeconds": 2})).json()
    new = await streams.open(rotated["secret"])
    await service.create("u1")
    assert (await old.peer.message())["event"] == "conversation.created", "the overlap has begun"
    await new.subscribe("private-contact-u1", "c2")
    with trio.fail_after(HANG_TIMEOUT_S):
        assert (await old.peer.message())["data"]["code"] == 4009
    await service.create("u1")
    assert (await new.peer.message())["event"] == "conversation.created"


async def test_a_rotation_without_overlap_ends_the_streams_of_the_former_secret_at_once(
    service: Service, streams: Streams
) -> None:
    made = await make(service, ("conversations.read",))
    stream = await streams.open(made["secret"])
    await stream.subscribe(project_channel(service))
    rotate = f"{credentials_of(service)}/{made['id']}/rotate"
    assert (await service.dashboard.post(rotate, json={"overlapSeconds": 0})).status_code == 200
    assert (await stream.ended())[0] == 4009


async def test_an_unused_token_of_a_revoked_credential_subscribes_to_nothing(
    service: Service, streams: Streams
) -> None:
    made = await make(service, ("conversations.read",))
    stream = await streams.open(made["secret"])
    auth = await stream.authorize(project_channel(service), "c1")
    await service.dashboard.delete(f"{credentials_of(service)}/{made['id']}")
    received = await stream.present(project_channel(service), auth)
    refused = orjson.loads(received["data"])
    assert (received["event"], refused["status"]) == ("pusher:subscription_error", 401)
    assert "machine credential" in refused["error"]
