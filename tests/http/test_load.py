"""Places that are few are refused at once when they are taken, and given back."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio

from deskwire.engine.errors import Unavailable
from deskwire.http.load import IMPORTS_MAX, Load
from deskwire.http.transport import FrontStream, Unsent


def test_only_so_many_imports_are_under_way_at_once() -> None:
    load = Load(requests_max=9, waits_max=9, bodies_bytes_max=9, writes_max=9, writes=())
    begun = [load.importing() for _ in range(IMPORTS_MAX)]
    for each in begun:
        each.__enter__()
    with pytest.raises(Unavailable) as refused, load.importing():
        pass
    assert (refused.value.reason, refused.value.retry_after_s) == ("overloaded", 1)
    assert (load.imports, load.refused["imports"]) == (IMPORTS_MAX, 1)
    begun[0].__exit__(None, None, None)
    with load.importing():
        assert load.imports == IMPORTS_MAX
    begun[1].__exit__(None, None, None)
    assert load.imports == 0


def test_nothing_begins_while_too_much_waits_for_clients_that_do_not_read() -> None:
    unsent = Unsent()
    load = Load(
        requests_max=9,
        waits_max=9,
        bodies_bytes_max=9,
        writes_max=9,
        writes=(),
        unsent=unsent,
    )
    unsent.size = 9
    load.check()
    unsent.size = 10
    with pytest.raises(Unavailable) as refused:
        load.check()
    assert (refused.value.reason, load.refused["answers"]) == ("overloaded", 1)


async def test_what_a_client_does_not_take_is_counted_until_it_does_or_is_cut_off() -> None:
    for patience_s in (20.0, 0.05):
        ours, theirs = trio.socket.socketpair()
        stream = FrontStream(trio.SocketStream(ours), write_timeout_s=patience_s)
        stream.unsent = unsent = Unsent()
        with theirs, trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_sent, stream, bytes(1 << 24))
                await trio.testing.wait_all_tasks_blocked(0.01)
                assert unsent.size == 1 << 24
                while patience_s > 1 and unsent.size:
                    await theirs.recv(1 << 20)
            assert unsent.size == 0
        await stream.aclose()


async def _sent(stream: FrontStream, data: bytes) -> None:
    with suppress(trio.BrokenResourceError):  # cut off
        await stream.send_all(data)
