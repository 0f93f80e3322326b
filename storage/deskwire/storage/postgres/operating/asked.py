"""A psycopg connection as the rules of a check ask it, which give no values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import psycopg

from deskwire.storage.connection import Rows


class Asked:
    """`connection.Connection` for statements without values, in a transaction of somebody else."""

    dialect: Final = "postgres"

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = (), /) -> Rows:
        """See `Connection.execute`."""
        assert not values, "rules have none"
        return self._connection.execute(sql.encode())

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """See `Connection.executemany`. Rules change nothing."""
        raise TypeError("rules change nothing")
