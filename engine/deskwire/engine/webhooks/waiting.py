"""How the tasks that send wait: for work, and for the time at which unused connections are closed."""

from __future__ import annotations

import trio

from deskwire.engine.webhooks.http.client import Client
from deskwire.engine.webhooks.http.pool import KEEPALIVE_S


async def wait_for_work(bell: trio.Event, due_s: float, client: Client, *, working: bool) -> None:
    """Return when `bell` rings or `due_s` seconds have passed; close connections that nobody has used for long.

    Args:
        due_s: infinite if nothing is due before somebody rings.
        working: whether attempts are under way, so that the connections are in use.
    """
    idle_s = float("inf") if working else KEEPALIVE_S
    with trio.move_on_after(min(due_s, idle_s)) as scope:
        await bell.wait()
    if scope.cancelled_caught and due_s > idle_s:
        await client.aclose()
        with trio.move_on_after(due_s - idle_s):
            await bell.wait()
