"""A handler's exception of any form ends its request only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio

from deskwire.http.api.calls import Answer, Call, Streamed
from deskwire.http.api.idempotency import answered
from deskwire.http.api.routing import Route
from tests.protocol.test_fast_path import BY_QUART
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.failures import BREAKS, Failures, failures_logged

BROKEN: Final = "/s2s/project"
"""The path whose handler is broken here."""

WAYS: Final[Mapping[str, Mapping[str, Any]]] = {
    "lane": {},
    "quart": {"headers": [BY_QUART]},
}
"""The ways in which a request may arrive; each takes another path through the server."""


def plant(monkeypatch: pytest.MonkeyPatch, broken: Callable[[], Awaitable[Answer | None]]) -> None:
    """Break the handler of `BROKEN`."""

    async def breaking(route: Route, call: Call[Any, Any], key: str | None) -> Answer:
        if route.path.endswith(BROKEN):
            answer = await broken()
            assert answer is not None
            return answer
        return await answered(route, call, key)

    monkeypatch.setattr("deskwire.http.api.pipeline.answered", breaking)


def client(service: Service, headers: Iterable[tuple[str, str]] = (), **how: Any) -> httpx.AsyncClient:
    own = ("Authorization", f"Bearer {service.demo['serverKey']}")
    return httpx.AsyncClient(base_url=f"{service.url}/v3", headers=[own, *headers], trust_env=False, **how)


@pytest.fixture
def failures() -> Iterator[Failures]:
    """Return the logged failures since the last call."""
    with failures_logged() as since:
        yield since


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("broken", BREAKS)
async def test_any_handler_exception_is_one_500_and_one_log_entry(
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    failures: Failures,
    broken: Callable[[], Awaitable[None]],
    way: str,
) -> None:
    """Decisions 1: a bug answers 500 with a `requestId` and no internals; the log has the traceback."""
    plant(monkeypatch, broken)
    with trio.fail_after(HANG_TIMEOUT_S):
        async with client(service, **WAYS[way]) as caller, client(service) as other:
            assert (await other.get("/s2s/events")).status_code == 200
            for _ in range(2):
                answer = await caller.get(BROKEN)
                assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
                assert "planted" not in answer.text
                (entry,) = failures()
                assert (entry["event"], entry["request_id"]) == ("http.failed", answer.json()["requestId"])
                assert entry["exc_info"].__traceback__ is not None
            assert (await other.get("/s2s/events")).status_code == 200
            assert (await caller.get("/s2s/events")).status_code == 200
        assert (await service.http.get("/s2s/events")).status_code == 200


@pytest.mark.parametrize("broken", BREAKS)
async def test_response_that_fails_midway_closes_only_its_connection(
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    failures: Failures,
    broken: Callable[[], Awaitable[None]],
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"begun"
        await broken()

    async def streamed() -> Answer:
        return Streamed(pieces(), "text/plain", {})

    plant(monkeypatch, streamed)
    with trio.fail_after(HANG_TIMEOUT_S):
        async with client(service, headers=[BY_QUART]) as caller:
            async with caller.stream("GET", BROKEN) as answer:
                with pytest.raises(httpx.RemoteProtocolError):
                    await answer.aread()
            (entry,) = failures()
            assert (entry["event"], entry["request_id"]) == ("http.failed", answer.headers["X-Request-Id"])
        assert (await service.http.get("/s2s/events")).status_code == 200


class Breaking:
    """A handler that waits, and raises when it is cancelled; `begun` and `ended` show its progress."""

    def __init__(self) -> None:
        self.begun = trio.Event()
        self.ended = trio.Event()

    async def __call__(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            self.begun.set()
            try:
                await trio.sleep_forever()
            except trio.Cancelled as error:
                self.ended.set()
                raise BaseExceptionGroup("planted", [trio.ClosedResourceError(), error]) from None


async def test_handler_that_fails_after_a_disconnect_stops_no_other_request(
    service: Service, monkeypatch: pytest.MonkeyPatch, failures: Failures
) -> None:
    handler = Breaking()
    plant(monkeypatch, handler)
    with trio.fail_after(HANG_TIMEOUT_S):
        async with client(service, headers=[BY_QUART]) as caller, trio.open_nursery() as asking:
            asking.start_soon(caller.get, BROKEN)
            await handler.begun.wait()
            asking.cancel_scope.cancel()
        await handler.ended.wait()
        assert (await service.http.get("/s2s/events")).status_code == 200
    (entry,) = failures()
    assert entry["event"] == "http.failed"
    assert entry["request_id"].startswith("req_")


@pytest.mark.parametrize("way", WAYS)
async def test_handler_that_fails_in_the_shutdown_does_not_disturb_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: Failures, way: str
) -> None:
    handler = Breaking()
    plant(monkeypatch, handler)
    with trio.fail_after(HANG_TIMEOUT_S):
        async with running(tmp_path, shutdown_s=0.2) as service, trio.open_nursery() as asking:
            asking.start_soon(ask_in_vain, service, WAYS[way])
            await handler.begun.wait()
            service.stop()
    assert [entry["event"] for entry in failures()] == ["http.failed"]


async def ask_in_vain(service: Service, way: Mapping[str, Any]) -> None:
    async with client(service, **way) as caller:
        with suppress(httpx.TransportError):
            assert (await caller.get(BROKEN)).status_code == 500
