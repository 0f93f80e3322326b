"""Fixtures for tests of webhooks."""

from __future__ import annotations

import ssl
from math import inf
from typing import Any

import pytest
import trio
import trustme
from trio.testing import MockClock

from tests.support.sockets.receivers import Behaviour, Receiver, Receivers, answering

# Time for bytes to pass between two ends of a socket in this process.
_PAUSE_S = 0.05


@pytest.fixture
def mock_clock(monkeypatch: pytest.MonkeyPatch) -> MockClock:
    """Time that jumps when the process is idle.

    It does not jump while a thread works, because disks may be slow.
    """
    clock, run_sync, at_work = MockClock(autojump_threshold=_PAUSE_S), trio.to_thread.run_sync, 0

    async def run_while_time_stands(*args: Any, **options: Any) -> Any:
        nonlocal at_work
        at_work += 1
        clock.autojump_threshold = inf
        try:
            return await run_sync(*args, **options)
        finally:
            at_work -= 1
            if not at_work:
                clock.autojump_threshold = _PAUSE_S

    monkeypatch.setattr(trio.to_thread, "run_sync", run_while_time_stands)
    return clock


@pytest.fixture
async def receivers(nursery: trio.Nursery, authority: trustme.CA) -> Receivers:
    """Start a receiver: `await receivers(behaviour, tls=False)`."""

    async def start(behaviour: Behaviour | None = None, *, tls: bool = False) -> Receiver:
        receiver = Receiver(behaviour or answering("204 No Content"), tls=tls)
        context = None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert("localhost").configure_cert(context)
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        receiver.port = listener.socket.getsockname()[1]
        secure: list[Any] = [trio.SSLListener(listener, context)] if context else [listener]
        nursery.start_soon(trio.serve_listeners, receiver.serve, secure)
        return receiver

    return start


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """An SSL context that trusts only the test authority."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context
