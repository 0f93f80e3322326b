"""Leases of nodes and what is held with them, as on a database that several nodes share; the one node of this one has none."""

from typing import Final

SQL: Final = """
CREATE TABLE installation (
    one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL
) STRICT;
INSERT INTO installation VALUES (1, 0);
-- AUTOINCREMENT: what belongs to a life of a node that is over must not be taken for another's.
CREATE TABLE nodes (
    incarnation INTEGER PRIMARY KEY AUTOINCREMENT, node TEXT NOT NULL, expires INTEGER NOT NULL, version TEXT NOT NULL,
    epoch_seen INTEGER NOT NULL, run TEXT NOT NULL DEFAULT '', files TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE duties (
    one INTEGER PRIMARY KEY CHECK (one = 1), incarnation INTEGER, generation INTEGER NOT NULL
) STRICT;
INSERT INTO duties VALUES (1, NULL, 0);
CREATE TABLE couriers (
    endpoint INTEGER PRIMARY KEY, incarnation INTEGER, generation INTEGER NOT NULL
) STRICT;
-- Who carries an erasure out that is under way, the marked contact's.
CREATE TABLE contact_erasures (
    contact INTEGER PRIMARY KEY, incarnation INTEGER NOT NULL
) STRICT;
"""
