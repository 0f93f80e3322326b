"""The look at all servers of the URL: whether another one was promoted, or an old primary has come back.

Sessions stay open for days, so what they met when they were opened says nothing of now.
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
    """Ask all hosts who they are, every so many seconds, until cancelled; each node does.

    A newer timeline is kept with the installation, so that a node which starts later knows of it.
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
    """Keep what was seen with the installation; return whether that was possible."""
    connection = BlockingConnection(database, "setup")
    try:
        connection.execute(NOTE_SEEN, (seen.system, seen.timeline))
    except DatabaseError as error:
        log.warning("storage.timeline_not_kept", reason=str(error))
        return False
    finally:
        connection.close()
    return True
