"""Clients that disconnect are noticed by one task for all connections, also if numbers of connections are used again."""

from __future__ import annotations

import select
import socket

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from deskwire.http.transport.hangups import Hangups
from tests.support.deadlines import HANG_TIMEOUT_S

pytestmark = pytest.mark.skipif(not hasattr(select, "epoll"), reason="the system has no epoll")


async def test_call_follows_the_disconnection() -> None:
    hangups, gone = Hangups(), trio.Event()
    ours, theirs = socket.socketpair()
    with ours, trio.fail_after(HANG_TIMEOUT_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hangups.run)
            with hangups.watching(ours.fileno(), gone.set):
                await wait_all_tasks_blocked()
                assert not gone.is_set()
                theirs.close()
                await gone.wait()
            nursery.cancel_scope.cancel()


async def test_connection_with_the_number_of_a_closed_one_is_watched() -> None:
    hangups, gone = Hangups(), trio.Event()
    first, its_peer = socket.socketpair()
    number = first.fileno()
    with its_peer, trio.fail_after(HANG_TIMEOUT_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hangups.run)
            closing = hangups.watching(number, lambda: None)
            closing.__enter__()
            first.close()  # as after a write that took too long
            second, other_peer = socket.socketpair()
            with second:
                assert second.fileno() == number
                with hangups.watching(number, gone.set):
                    closing.__exit__(None, None, None)
                    other_peer.close()
                    await gone.wait()
            nursery.cancel_scope.cancel()


async def test_connection_may_end_after_the_task() -> None:
    hangups = Hangups()
    ours, theirs = socket.socketpair()
    with ours, theirs, hangups.watching(ours.fileno(), lambda: None), trio.CancelScope() as scope:
        scope.cancel()
        await hangups.run()
