"""The watch over all servers of the URL, which notices a promotion and the return of an old primary.

Sessions stay open for days, so the identity that a session found when it was opened may be out of date.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import structlog
import trio

from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.refusals import DatabaseError
from deskwire.storage.postgres.driver.server_identity import Seen
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.operating.installation import NOTE_SEEN

log: Final = structlog.get_logger(__name__)

EACH_S: Final = 5.0
_ANSWER_S: Final = 2.0


async def watch_servers(database: Database, each_s: float = EACH_S) -> None:
    """Ask all hosts for their identity at each interval, until cancelled; runs on each node.

    A newer timeline is recorded with the installation, so that a node that starts later knows it.
    """
    kept = Seen()
    while True:
        await trio.to_thread.run_sync(partial(database.look_around, _ANSWER_S), abandon_on_cancel=True)
        seen = database.servers.seen
        if seen not in (kept, Seen()) and await trio.to_thread.run_sync(
            _keep, database, seen, abandon_on_cancel=True
        ):
            kept = seen
        await trio.sleep(each_s)


def _keep(database: Database, seen: Seen) -> bool:
    """Record the newest identity with the installation; return whether that was possible."""
    connection = BlockingConnection(database, "setup")
    try:
        connection.execute(NOTE_SEEN, (seen.system, seen.timeline))
    except DatabaseError as error:
        log.warning("storage.timeline_not_kept", reason=str(error))
        return False
    finally:
        connection.close()
    return True
