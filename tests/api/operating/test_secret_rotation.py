"""The installation's secret is replaced under a service that goes on (ADR 25)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import trio

from deskwire.commands.admin.client import send_command
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.encryption import DecryptionFailed, Encryption
from deskwire.engine.core.secret import Secrets
from deskwire.program.secret_file import installation_secrets
from deskwire.storage.sqlite.check import check
from tests.api.events.test_channels_agree import receiving, register
from tests.api.stream.test_revocation import Streams, project_channel
from tests.support.api.customers import Browser, make_channel, signed
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.replay.signature import signature_fault
from tests.support.stores import beside, chosen

DAY_S = 86_400


async def rotate(directory: Path, overlap_s: int = DAY_S) -> dict[str, Any]:
    """Order a rotation from the running service."""
    said = await trio.to_thread.run_sync(
        send_command, directory, "secret.rotate", orjson.dumps({"overlapS": overlap_s})
    )
    assert said is not None
    assert "answer" in said, said
    answer: dict[str, Any] = said["answer"]
    return answer


def sealed(directory: Path, table: str = "endpoints") -> list[bytes]:
    """Return the sealed secrets of the endpoints or channels, as stored, oldest first."""
    with beside(directory) as connection:
        rows = connection.execute(f"SELECT sealed_secret, old_secret FROM {table} ORDER BY rowid").fetchall()
    return [each for row in rows for each in row if each is not None]


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as made:
        yield made


async def file_of(service: Service, url: str) -> int:
    """The status of fetching a file by its link, without a credential."""
    async with httpx.AsyncClient(trust_env=False) as browser:
        return (await browser.get(f"{service.url}/v3{url.partition('/v3')[2]}")).status_code


async def said_once(service: Service, conversation: dict[str, Any]) -> str:
    """The id of a message that is posted under one Idempotency-Key."""
    path = f"/s2s/conversations/{conversation['id']}/messages"
    answer = await service.http.post(path, json={"text": "once"}, headers={"Idempotency-Key": "k"})
    return str(answer.json()["id"])


async def uploaded(service: Service) -> str:
    return str((await service.http.post("/uploads", files={"file": ("a.txt", b"bytes")})).json()["url"])


@pytest.mark.sqlite  # a file and a socket in the directory: nodes are given theirs by settings
@pytest.mark.parametrize("overlap_s", [DAY_S, 0])
async def test_rotation_invalidates_old_signatures_only_after_the_overlap(
    tmp_path: Path, stack: AsyncExitStack, overlap_s: int
) -> None:
    before = 200 if overlap_s else None
    async with receiving() as receiver, running(tmp_path) as service:
        endpoint = await register(service, receiver.url, events=["message.created"])
        link = await uploaded(service)
        conversation = await service.create(message={"text": "before"})
        first = await said_once(service, conversation)
        stream = await Streams(service, stack).open(service.demo["serverKey"])
        held = await Streams(service, stack).open(service.demo["serverKey"])
        await held.subscribe(project_channel(service), "c1")
        auth = await stream.authorize(project_channel(service), "c2")
        old = installation_secrets(tmp_path, None)

        done = await rotate(tmp_path, overlap_s)
        assert done["sealedAnew"] == 2, "the endpoint's, and the demo channel's"
        now = installation_secrets(tmp_path, None)
        assert now.known == (now.current, old.current)

        assert (await service.dashboard.get("/conversations")).status_code == (before or 401)
        assert await file_of(service, link) == (before or 403)
        told = await stream.present(project_channel(service), auth)
        assert told["event"].endswith("subscription_succeeded" if overlap_s else "subscription_error")
        assert await said_once(service, conversation) == first
        assert await file_of(service, await uploaded(service)) == 200
        signed_in = await service.http.post(
            "/auth/token", json=service.demo["user"], headers={"Authorization": ""}
        )
        token = {"Authorization": f"Bearer {signed_in.json()['token']}"}
        assert (await service.dashboard.get("/conversations", headers=token)).status_code == 200
        other = await Streams(service, stack).open(service.demo["serverKey"])
        await other.subscribe(project_channel(service), "c3")
        await service.say(conversation, "after")
        await receiver.wait(3)
        for request in receiver.requests:
            header = request.headers["Service-Signature"]
            assert signature_fault(endpoint["secret"], header, request.body, int(header[2:12])) is None
        assert [Encryption(Secrets(now.current)).open(each) for each in sealed(tmp_path)] == [
            endpoint["secret"]
        ]
    report = await trio.to_thread.run_sync(lambda: check(tmp_path, Secrets(now.current), contents=False))
    assert report.problems == []


@pytest.mark.sqlite  # a file and a socket in the directory: nodes are given theirs by settings
async def test_a_rotation_that_was_cut_short_is_finished_by_the_next_start(tmp_path: Path) -> None:
    async with receiving() as receiver:
        async with running(tmp_path) as service:
            endpoint = await register(service, receiver.url, events=["message.created"])
            link = await uploaded(service)
        before = installation_secrets(tmp_path, None)
        after = before.rotated("a new secret, which a kill left unused", wall_clock(), DAY_S * 1_000)
        (tmp_path / "secret").write_text(after.written())
        with pytest.raises(DecryptionFailed):
            Encryption(Secrets(after.current)).open(sealed(tmp_path)[0])
        async with running(tmp_path) as service:
            assert Encryption(Secrets(after.current)).open(sealed(tmp_path)[0]) == endpoint["secret"]
            assert await file_of(service, link) == 200
            await service.create(message={"text": "signed as ever"})
            await receiver.wait(1)


@pytest.mark.sqlite  # a file and a socket in the directory: nodes are given theirs by settings
async def test_a_former_secret_leaves_the_file_when_nothing_needs_it(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        await register(service, "http://127.0.0.1:9000/x")
        await rotate(tmp_path, 0)
    assert len(installation_secrets(tmp_path, None).known) == 2
    async with running(tmp_path):
        assert len(installation_secrets(tmp_path, None).known) == 2, "answers are kept for a day"
    async with running(tmp_path, idempotency_s=1, retention_interval_s=1):
        with trio.fail_after(HANG_TIMEOUT_S):
            while len(installation_secrets(tmp_path, None).known) == 2:  # noqa: ASYNC110  # a file rings no bell
                await trio.sleep(0.05)  # poll: there is no notification
    async with running(tmp_path) as service:
        assert len((await service.http.get("/s2s/webhooks")).json()["items"]) == 1


async def test_a_secret_of_the_settings_is_rotated_by_the_settings(tmp_path: Path) -> None:
    old, new = "the first secret of the settings, long", "the second secret of the settings, long"
    async with receiving() as receiver:
        async with running(tmp_path, secret=old) as service:
            endpoint = await register(service, receiver.url, events=["message.created"])
            link = await uploaded(service)
            said = await trio.to_thread.run_sync(send_command, tmp_path, "secret.rotate", b'{"overlapS": 60}')
            if chosen() == "postgres":
                assert said is None, "a node takes no orders"
            else:
                assert said is not None
                assert said["refusal"]["code"] == "secret_in_settings"
                assert "DESKWIRE_SECRET_PREVIOUS" in said["refusal"]["detail"]
        async with running(tmp_path, secret=new, secret_previous=old) as service:
            assert await file_of(service, link) == 200
            assert (await service.dashboard.get("/conversations")).status_code == 200
        assert Encryption(Secrets(new)).open(sealed(tmp_path)[0]) == endpoint["secret"]
        async with running(tmp_path, secret=new) as service:
            assert await file_of(service, link) == 403
            assert (await service.dashboard.get("/conversations")).status_code == 401
            await service.create(message={"text": "signed as ever"})
            await receiver.wait(1)
    assert not (tmp_path / "secret").exists()


@pytest.mark.sqlite  # a file and a socket in the directory: nodes are given theirs by settings
@pytest.mark.parametrize("overlap_s", [DAY_S, 0])
async def test_rotation_keeps_the_secrets_of_channels_and_the_sessions_of_customers(
    tmp_path: Path, overlap_s: int
) -> None:
    async with running(tmp_path) as service:
        former = await make_channel(service)
        rotated = await service.http.post(f"/channels/{former['id']}/rotate-secret")
        channel = {
            **former,
            "identity": {**former["identity"], "secret": rotated.json()["identity"]["secret"]},
        }
        async with Browser(service, channel) as known, Browser(service, channel) as visitor:
            await known.start(signed(channel, "u1"))
            await visitor.start()
            unseen = Browser(service, channel)
            await unseen.start()
            first = {"clientId": "c1", "message": {"text": "before", "clientId": "m1"}}
            assert (await visitor.call("POST", "/conversations", json=first)).status_code == 200

            done = await rotate(tmp_path, overlap_s)
            assert done["sealedAnew"] == 2, "the demo's channel, and this one with both of its secrets"

            now = Encryption(Secrets(installation_secrets(tmp_path, None).current))
            demo, *ours = [now.open(each) for each in sealed(tmp_path, "channels")]
            assert demo == service.demo["channelSecret"]
            assert ours == [channel["identity"]["secret"], former["identity"]["secret"]]
            for signer in (channel, former):
                async with Browser(service, channel) as another:
                    assert (await another.start(signed(signer, "u2"))).status_code == 200
            for browser in (known, visitor):
                assert (await browser.call("GET", "/me")).status_code == 200
            # Nothing is stored of a visitor who has not written, so that the signature alone proves the token.
            assert (await unseen.call("GET", "/me")).status_code == (200 if overlap_s else 401)
            await unseen.http.aclose()
