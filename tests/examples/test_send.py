"""The senders: a message is stored once, whatever comes between, and a service that wants a pause gets it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio

from tests.examples.languages import Language
from tests.support.sockets.server_process import Server, environment

pytestmark = pytest.mark.long

EXAMPLE = "send"
BURST = 5


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A service that takes a call every 6 seconds, and a few at once."""
    limits = {"DESKWIRE_RATE_LIMIT_PER_MINUTE": "10", "DESKWIRE_RATE_LIMIT_BURST": str(BURST)}
    server = Server(tmp_path, environ=limits)
    await server.start()
    yield server
    assert await server.stop() == 0


@dataclass(eq=False)
class Between:
    """A proxy between a sender and the service that loses answers.

    Args:
        lose: the number of answers to lose, with the connection.
        before: a function that runs before the next connection is passed on.
        answers: the time, the status and the wanted pause of each answer.
    """

    port: int
    lose: int = 0
    before: Callable[[], Awaitable[None]] | None = None
    answers: list[tuple[float, int, float]] = field(default_factory=list)

    @property
    def statuses(self) -> list[int]:
        """The statuses of all answers."""
        return [status for _, status, _ in self.answers]

    async def serve(self, client: trio.SocketStream, upstream: int) -> None:
        """Pass a connection on, without the answers to lose."""
        before, self.before = self.before, None
        if before is not None:
            await before()
        async with (
            client,
            await trio.open_tcp_stream("127.0.0.1", upstream) as service,
            trio.open_nursery() as both,
        ):
            both.start_soon(self._requests, client, service)
            with suppress(trio.BrokenResourceError):
                async for data in service:
                    if self._lost(data):
                        break
                    await client.send_all(data)
            both.cancel_scope.cancel()

    async def _requests(self, client: trio.SocketStream, service: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async for data in client:
                await service.send_all(data)
            await service.send_eof()

    def _lost(self, data: bytes | bytearray) -> bool:
        head = re.match(rb"HTTP/1\.[01] (\d{3})", data)
        if head is None:
            return False
        wanted = re.search(rb"\r\nretry-after: (\d+)", data, re.IGNORECASE)
        self.answers.append((trio.current_time(), int(head[1]), float(wanted[1]) if wanted else 0))
        self.lose -= 1
        return self.lose >= 0


@asynccontextmanager
async def between(server: Server) -> AsyncIterator[Between]:
    """Yield what stands between senders and this service."""
    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        stage = Between(listener.socket.getsockname()[1])
        nursery.start_soon(trio.serve_listeners, lambda client: stage.serve(client, server.port), [listener])
        yield stage
        nursery.cancel_scope.cancel()


async def sent(language: Language, server: Server, stage: Between, *arguments: str) -> tuple[int, str]:
    """Run a sender; return its status and what it prints."""
    environ = {
        "BASE": f"http://127.0.0.1:{stage.port}",
        "KEY": server.demo()["serverKey"],
        "NO_PROXY": "*",
        "no_proxy": "*",
    }
    command = [*language.command("send"), *arguments]
    with trio.fail_after(120):
        done = await trio.run_process(
            command, env={**environment(), **environ}, capture_stdout=True, capture_stderr=True, check=False
        )
    return done.returncode, (done.stdout + done.stderr).decode().strip()


async def exhaust(api: httpx.AsyncClient) -> None:
    """Make calls until the limit holds for some seconds."""
    while True:
        answer = await api.get("/s2s/project")
        if answer.status_code == 429 and int(answer.headers["Retry-After"]) >= 5:
            return


async def test_a_message_is_stored_once_over_a_lost_answer_and_a_limit(
    at_hand: Language, server: Server, api: httpx.AsyncClient
) -> None:
    conversation = (await api.post("/s2s/conversations", json={"contact": {"userId": "u1"}})).json()["id"]
    messages = f"/s2s/conversations/{conversation}/messages"
    async with between(server) as stage:
        stage.lose = 1
        status, printed = await sent(
            at_hand, server, stage, conversation, "order-1001-shipped", "Grüße, it left us."
        )
        assert (status, stage.statuses) == (0, [200, 200]), printed
        listed = await api.get(messages)
        stage.before = partial(exhaust, api)
        status, printed_again = await sent(
            at_hand, server, stage, conversation, "order-1001-arrived", "It has arrived."
        )
        assert status == 0, printed_again
        refused, carried_out = stage.answers[2], stage.answers[-1]
        assert (refused[1], carried_out[1]) == (429, 200)
        assert refused[2] >= 1
        assert carried_out[0] - refused[0] >= refused[2]
        attempts = len(stage.answers)
        status, refusal = await sent(at_hand, server, stage, "cnv_unknown", "nowhere", "Hello?")
        assert status == 1
        assert refusal.startswith("not sent: ")
        assert "404" in refusal or "not_found" in refusal
        assert stage.statuses[attempts:][-1] == 404
    stored = [(each["id"], each["text"], each["author"]["type"]) for each in listed.json()["items"]]
    assert stored == [(printed.removeprefix("sent "), "Grüße, it left us.", "bot")]
    assert printed_again.startswith("sent msg_")
