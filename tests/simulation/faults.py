"""The faults of a world, picked at random; the more likely ones are listed more than once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import trio

from tests.simulation.disk import ENDS
from tests.simulation.network import Link
from tests.simulation.peers.consumer import Consumer
from tests.simulation.world import World


def _process(world: World) -> Consumer:
    return world.dice.choice(world.consumers)


def _links(world: World) -> Sequence[Link]:
    return world.dice.choices(world.links, k=1) if world.links else ()


async def _launch(world: World) -> None:
    """Start a process with an id of its own: a takeover."""
    world.launch()


async def _twin(world: World) -> None:
    """Start a second process with the same id."""
    world.launch(_process(world).consumer_id)


async def _restart(world: World) -> None:
    """End a process, and start it again with its old id."""
    process = _process(world)
    process.kill()
    await trio.sleep(world.dice.random() * 20)  # virtual time: the mock clock jumps
    world.launch(process.consumer_id)


async def _kill(world: World) -> None:
    _process(world).kill()


async def _vanish(world: World) -> None:
    """Turn off a machine: its connection stays half open."""
    process = _process(world)
    if process.link is not None:
        process.link.freeze()
    process.kill()


async def _cut(world: World) -> None:
    for link in _links(world):
        link.cut()


async def _freeze(world: World) -> None:
    for link in _links(world):
        link.freeze()


async def _pause(world: World) -> None:
    """Freeze the network for a while; it delivers the data late."""
    for link in _links(world):
        link.freeze()
        await trio.sleep(world.dice.random() * 60)  # virtual time: the mock clock jumps
        link.freeze(frozen=False)


async def _trickle(world: World) -> None:
    for link in _links(world):
        link.trickle(world.dice.choice((100, 1_000, 5_000)))


async def _stall(world: World) -> None:
    """Stop a process for a while."""
    process = _process(world)
    process.stall()
    await trio.sleep(world.dice.random() * 100)  # virtual time: the mock clock jumps
    process.go_on()


async def _unsubscribe(world: World) -> None:
    with trio.move_on_after(1):
        await _process(world).unsubscribe()


async def _disconnect(world: World) -> None:
    with trio.move_on_after(1):
        await _process(world).disconnect()


async def _restart_both(world: World) -> None:
    """Disconnect a client while the server stops."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_disconnect, world)
        nursery.start_soon(world.stop)


# The server, its disk, and its receivers


async def _kill_server(world: World) -> None:
    await world.crash(world.dice.choice(ENDS))


async def _lose_server(world: World) -> None:
    """Turn off the server's machine without notice to any client."""
    await world.crash(world.dice.choice(ENDS), silently=True)


async def _stop_server(world: World) -> None:
    await world.stop()


async def _fill_disk(world: World) -> None:
    """Fill the disk for a while."""
    server = world.server
    if server is not None:
        server.disk.fill(full=True)
        await trio.sleep(world.dice.random() ** 3 * 60)  # virtual time: the mock clock jumps
        world.disk_failed()
        server.disk.fill(full=False)


async def _fail_disk(world: World) -> None:
    """Make some statements fail, anywhere."""
    for _ in range(world.dice.randrange(1, 4)):
        if world.server is not None:
            world.server.disk.fail_soon()
        await trio.sleep(world.dice.random() * 5)  # virtual time: the mock clock jumps
        world.disk_failed()


async def _fail_reads(world: World) -> None:
    server = world.server
    if server is not None:
        server.disk.reads_fail = True
        await trio.sleep(world.dice.random() * 3)  # virtual time: the mock clock jumps
        world.disk_failed()
        server.disk.reads_fail = False


async def _change_receiver(world: World) -> None:
    world.dice.choice(world.internet.receivers).change()


async def _change_receivers(world: World) -> None:
    for receiver in world.internet.receivers:
        receiver.change()


async def _retire_receiver(world: World) -> None:
    """Let a receiver answer 410 for a while."""
    receiver = world.dice.choice(world.internet.receivers)
    if not receiver.healthy:
        receiver.manner = "gone"
        await trio.sleep(world.dice.random() * 20)  # virtual time: the mock clock jumps
        receiver.change()


async def _cut_delivery(world: World) -> None:
    for _ in range(world.dice.randrange(1, 6)):
        world.internet.cut()
        await trio.sleep(world.dice.random())  # virtual time: the mock clock jumps


async def _rush(world: World) -> None:
    """Run many clients concurrently."""
    for _ in range(world.dice.randrange(5, 30)):
        world.later(world.client.do_something)


FAULTS: Final[Sequence[Callable[[World], Awaitable[None]]]] = (
    *(_launch, _launch, _launch, _twin, _restart, _restart, _kill, _vanish),
    *(_cut, _cut, _freeze, _pause, _trickle, _trickle, _stall, _unsubscribe, _disconnect),
    *(_kill_server, _kill_server, _kill_server, _lose_server, _stop_server, _restart_both),
    *(_fill_disk, _fail_disk, _fail_disk, _fail_reads),
    *(_change_receiver, _change_receiver, _change_receivers, _retire_receiver, _cut_delivery, _rush, _rush),
)
