"""Streams end with the server key that authorized them, and with their project (decisions 2 and 5, ADR 8)."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
import trio
from wsproto.events import TextMessage

from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.secret import derived_key
from deskwire.engine.core.values import replace
from deskwire.engine.stream.token import Grant, issue
from deskwire.program.secret_file import installation_secrets
from tests.support.api.service import Service, running
from tests.support.deadlines import fail_after_idle
from tests.support.sockets.raw_peer import RawPeer, upgrade
from tests.support.sockets.server_process import environment
from tests.support.stores import settings_of

WITHIN_S: Final = 1.0
"""Maximum time of a revocation, from its response to the client's `pusher:error`."""


class Stream:
    """A consumer on a raw socket, which authorizes with a key of its own."""

    def __init__(self, service: Service, peer: RawPeer, key: str) -> None:
        self.service, self.peer, self.key, self.socket_id = service, peer, key, ""

    async def authorize(self, channel: str, consumer_id: str, key: str | None = None) -> str:
        """Return the authorization for a subscription."""
        asked = {"socket_id": self.socket_id, "channel_name": channel, "consumerId": consumer_id}
        headers = {"Authorization": f"Bearer {key or self.key}"}
        answer = await self.service.http.post("/s2s/stream/auth", json=asked, headers=headers)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["auth"])

    async def present(self, channel: str, auth: str) -> dict[str, Any]:
        """Subscribe; return the response."""
        message = {"event": "pusher:subscribe", "data": {"channel": channel, "auth": auth}}
        await self.peer.send(TextMessage(orjson.dumps(message).decode()))
        return await self.peer.message()

    async def subscribe(self, channel: str, consumer_id: str = "c1", key: str | None = None) -> None:
        received = await self.present(channel, await self.authorize(channel, consumer_id, key))
        assert received["event"] == "pusher_internal:subscription_succeeded", received

    async def ended(self) -> tuple[int, str, int | None]:
        """Return code and message of the next `pusher:error`, which must come in time, and the close code."""
        with fail_after_idle(WITHIN_S):
            received = await self.peer.message()
        assert received["event"] == "pusher:error", received
        return received["data"]["code"], received["data"]["message"], await self.peer.close_code()


class Streams:
    """Opens connections, and closes them at the end."""

    def __init__(self, service: Service, stack: AsyncExitStack) -> None:
        self._service, self._stack = service, stack

    async def open(self, key: str, stream_key: str | None = None) -> Stream:
        """Open a connection, and read its socket id."""
        host, _, port = self._service.url.removeprefix("http://").rpartition(":")
        socket = await self._stack.enter_async_context(await trio.open_tcp_stream(host, int(port)))
        stream = Stream(self._service, RawPeer(socket), key)
        await stream.peer.open(upgrade("?protocol=7", stream_key or self._service.demo["streamKey"]))
        stream.socket_id = orjson.loads((await stream.peer.message())["data"])["socket_id"]
        return stream


@pytest.fixture
async def stack() -> Any:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def streams(service: Service, stack: AsyncExitStack) -> Streams:
    return Streams(service, stack)


def project_channel(service: Service) -> str:
    return f"private-project-{service.demo['projectId']}"


async def new_key(service: Service, project: str | None = None) -> dict[str, Any]:
    """Create another server key, and return it with its id."""
    path = f"/projects/{project or service.demo['projectId']}/keys"
    made: dict[str, Any] = (await service.dashboard.post(path, json={"label": "stream"})).json()
    return made


async def revoke(service: Service, key: dict[str, Any]) -> None:
    path = f"/projects/{key['projectId']}/keys/{key['id']}/revoke"
    assert (await service.dashboard.post(path)).status_code == 200


async def revoke_by_command(directory: Path, key_id: str) -> None:
    """Revoke a key as an operator does, in a process of its own."""
    url = settings_of(directory).get("database_url")
    command = [sys.executable, "-m", "deskwire", "key", "revoke", key_id]
    env = dict(environment())
    if url is None:
        command += ["--data", str(directory)]
    else:
        env["DESKWIRE_DATABASE_URL"] = url
        env["DESKWIRE_SECRET"] = installation_secrets(directory, None).current
    await trio.run_process(command, env=env, stdout=subprocess.DEVNULL)


async def test_stream_ends_within_a_second_of_its_keys_revocation(service: Service, streams: Streams) -> None:
    """Pusher protocol, close codes: 4009 is what stops every client that can be stopped, and means unauthorized."""
    key = await new_key(service)
    own, other = await streams.open(key["key"]), await streams.open(service.demo["serverKey"])
    contact = "private-contact-u1"
    await service.create("u1")
    await own.subscribe(project_channel(service))
    await other.subscribe(contact)
    await revoke(service, key)
    code, message, closed = await own.ended()
    assert (code, closed) == (4009, 4009)
    assert "revoked" in message
    await service.create("u1")
    assert (await other.peer.message())["event"] == "conversation.created"
    held = (await service.http.get("/s2s/stream/consumers")).json()["items"]
    assert {each["channel"]: each["connected"] for each in held} == {
        project_channel(service): False,
        contact: True,
    }


async def test_a_revocation_by_command_beside_the_server_ends_them_too(
    service: Service, streams: Streams
) -> None:
    key = await new_key(service)
    stream = await streams.open(key["key"])
    await stream.subscribe(project_channel(service))
    await revoke_by_command(service.directory, key["id"])
    assert (await stream.ended())[0] == 4009


async def test_standby_ends_with_its_key_like_a_consumer(service: Service, streams: Streams) -> None:
    key = await new_key(service)
    first, second = await streams.open(key["key"]), await streams.open(service.demo["serverKey"])
    await first.subscribe(project_channel(service), "c1")
    await second.subscribe(project_channel(service), "c2")
    assert (await first.ended())[0] == 4009
    standby = await streams.open(key["key"])
    channel = project_channel(service)
    received = await standby.present(channel, await standby.authorize(channel, "c1"))
    assert orjson.loads(received["data"])["status"] == 409
    await revoke(service, key)
    assert (await standby.ended())[0] == 4009


async def test_connection_with_other_valid_keys_is_asked_to_reconnect(
    service: Service, streams: Streams
) -> None:
    """The client authorizes all its channels again, and gets those that it may still have."""
    key = await new_key(service)
    await service.create("u1")
    stream = await streams.open(service.demo["serverKey"])
    await stream.subscribe(project_channel(service))
    await stream.subscribe("private-contact-u1", key=key["key"])
    await revoke(service, key)
    code, _, closed = await stream.ended()
    assert (code, closed) == (4100, 4100)


async def test_an_unused_token_of_a_revoked_key_subscribes_to_nothing(
    service: Service, streams: Streams
) -> None:
    """The connection stays open: it had nothing that ends."""
    key = await new_key(service)
    stream = await streams.open(key["key"])
    auth = await stream.authorize(project_channel(service), "c1")
    await revoke(service, key)
    received = await stream.present(project_channel(service), auth)
    refused = orjson.loads(received["data"])
    assert (received["event"], refused["type"], refused["status"]) == (
        "pusher:subscription_error",
        "AuthError",
        401,
    )
    assert "revoked" in refused["error"]
    await stream.subscribe(project_channel(service), key=service.demo["serverKey"])


async def test_token_of_a_key_revoked_during_a_restart_is_refused(
    tmp_path: Path, stack: AsyncExitStack
) -> None:
    """Revoke the key while no server runs to be notified."""
    async with running(tmp_path) as before:
        keys = [await new_key(before), await new_key(before)]
    await revoke_by_command(tmp_path, keys[0]["id"])
    secret = derived_key(installation_secrets(tmp_path, None).current, "stream")
    async with running(tmp_path) as service:
        channel = project_channel(service)
        stream = await Streams(service, stack).open("")
        # A token is bound to its socket, and no socket survives a restart, so the test signs it again for the new socket.
        grant = Grant(service.demo["projectId"], keys[0]["id"], stream.socket_id, channel, "c1")
        heads = [grant, replace(grant, key_id=keys[1]["id"]), replace(grant, key_id="key_unknown")]
        received = [
            await stream.present(
                channel, f"{service.demo['streamKey']}:{issue(secret, each, now_ms=wall_clock())}"
            )
            for each in heads
        ]
        assert [each["event"].partition(":")[2] for each in received] == [
            "subscription_error",
            "subscription_succeeded",
            "subscription_error",
        ]


async def test_connections_of_a_removed_project_end(service: Service, streams: Streams) -> None:
    """End them with the code that a new client gets: 4001."""
    organisation = (await service.dashboard.get("/organisations")).json()["items"][0]["id"]
    path = f"/organisations/{organisation}/projects"
    project = (await service.dashboard.post(path, json={"name": "Bank"})).json()
    key = (await new_key(service, project["id"]))["key"]
    idle, busy = [await streams.open(key, project["streamKey"]) for _ in range(2)]
    await busy.subscribe(f"private-project-{project['id']}")
    ours = await streams.open(service.demo["serverKey"])
    await ours.subscribe(project_channel(service))
    assert (await service.dashboard.delete(f"/projects/{project['id']}")).status_code == 200
    for stream in (idle, busy):
        code, _, closed = await stream.ended()
        assert (code, closed) == (4001, 4001)
    await service.create()
    assert (await ours.peer.message())["event"] == "conversation.created"


async def test_change_without_effect_on_rights_ends_no_stream(service: Service, streams: Streams) -> None:
    stream = await streams.open(service.demo["serverKey"])
    await stream.subscribe(project_channel(service))
    key = await new_key(service)
    project = f"/projects/{service.demo['projectId']}"
    assert (await service.dashboard.patch(project, json={"name": "Shop"})).status_code == 200
    await revoke(service, key)
    assert isinstance(await service.create(), dict)
    assert (await stream.peer.message())["event"] == "conversation.created"
