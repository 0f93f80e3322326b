"""The task that adds day partitions before their first row."""

from __future__ import annotations

from typing import Final

import psycopg
import structlog
import trio
from psycopg import errors

from deskwire.storage.postgres.admin.preflight import connected
from deskwire.storage.postgres.driver.errors import DatabaseUnusableError
from deskwire.storage.postgres.driver.servers import Servers
from deskwire.storage.postgres.schema.days import (
    DAY_TABLES,
    DAYS_AHEAD,
    TODAY,
    DayTable,
    add_day,
    unblock_default,
)

log: Final = structlog.get_logger(__name__)

_INTERVAL_S: Final = 3_600.0


async def add_days_ahead(url: str, servers: Servers | None = None, interval_s: float = _INTERVAL_S) -> None:
    """Add the partitions of the coming days at each interval, until cancelled.

    Run by the leader.
    """
    while True:
        await trio.to_thread.run_sync(add_days, url, servers, abandon_on_cancel=True)
        await trio.sleep(interval_s)


def add_days(url: str, servers: Servers | None = None) -> bool:
    """Add the missing partitions of today and the coming days; return whether all exist.

    A failure is only logged, with advice, because rows of a day without a partition go to the default one.
    """
    try:
        with connected(url, "days", servers=servers) as connection:
            whole = [_add_for_table(connection, table) for table in DAY_TABLES]
    except errors.InsufficientPrivilege as error:
        _warn(error, "let this account own the tables, or run `deskwire migrate` daily with one that does")
    except errors.LockNotAvailable as error:
        _warn(error, "it is tried again within the hour; a dump or an export that reads for hours delays it")
    except (psycopg.Error, DatabaseUnusableError) as error:
        _warn(error, "it is tried again within the hour")
    else:
        return all(whole)
    return False


def _add_for_table(connection: psycopg.Connection, table: DayTable) -> bool:
    """Add a table's missing partitions; return whether all exist."""
    unblock_default(connection, table)
    before = set(connection.execute(table.partitions.encode()).fetchall())
    today = int(connection.execute(TODAY.encode()).fetchall()[0][0])
    there = [add_day(connection, table, day) for day in range(today, today + DAYS_AHEAD + 1)]
    after = set(connection.execute(table.partitions.encode()).fetchall())
    if after - before:
        connection.execute(f"ANALYZE {table.name}".encode())
        log.info("storage.days_added", partitions=sorted(name for (name,) in after - before))
    return all(there)


def _warn(error: Exception, advice: str) -> None:
    log.warning("storage.days_not_added", reason=" ".join(str(error).split()), advice=advice)
