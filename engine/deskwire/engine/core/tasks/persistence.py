"""Work that has been promised: tried again until it is done, whatever comes in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from deskwire.engine.core.tasks.failure import PAUSE_S, contained

_RETRY_S: Final = 1.0


async def until_done(attempt: Callable[[], Awaitable[bool]], tell: Callable[[BaseException], object]) -> None:
    """Make attempts until one returns True; one that fails by a bug is told of, and the next one comes later.

    Such a bug ends no other work of the nursery.
    """
    while True:
        failed = True
        with contained(tell):
            if await attempt():
                return
            failed = False
        await trio.sleep(_RETRY_S + (PAUSE_S if failed else 0))
