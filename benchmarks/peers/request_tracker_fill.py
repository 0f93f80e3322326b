"""Copies of a ticket in Request Tracker's tables: the rows that its API makes, without the hours that the API would take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import psycopg

from benchmarks.job import SENT
from benchmarks.peers.peer import TEXT

_TABLES: Final = """
CREATE TEMP TABLE wanted (number integer PRIMARY KEY, text text NOT NULL) ON COMMIT DROP;
CREATE TEMP TABLE copies (ticket integer, number integer, text text, at timestamp) ON COMMIT DROP;
CREATE TEMP TABLE roles (ticket integer, old integer, new integer) ON COMMIT DROP;
CREATE TEMP TABLE members (old integer, new integer, old_row integer, new_row integer) ON COMMIT DROP;
CREATE TEMP TABLE messages (ticket integer, old bigint, new bigint, text text, at timestamp) ON COMMIT DROP
"""

_STEPS: Final = (
    # A second between two tickets, so that their order is known; RT reads no fractions of one.
    """
    INSERT INTO copies
    SELECT nextval('tickets_id_seq'), number, text,
    date_trunc('second', now() AT TIME ZONE 'UTC') - (max(number) OVER () - number) * interval '1 s'
    FROM wanted ORDER BY number
    """,
    """
    INSERT INTO tickets SELECT made.* FROM copies, tickets,
    jsonb_populate_record(tickets, jsonb_build_object(
        'id', copies.ticket, 'effectiveid', copies.ticket, 'created', at, 'started', at, 'lastupdated', at)) made
    WHERE tickets.id = %(pattern)s
    """,
    # A group's id is that of its principal.
    """
    INSERT INTO roles SELECT copies.ticket, groups.id, nextval('principals_id_seq') FROM copies, groups
    WHERE domain = 'RT::Ticket-Role' AND instance = %(pattern)s
    """,
    """
    INSERT INTO principals SELECT made.* FROM roles JOIN principals ON id = old,
    jsonb_populate_record(principals, jsonb_build_object('id', new)) made
    """,
    """
    INSERT INTO groups SELECT made.* FROM roles JOIN groups ON id = old,
    jsonb_populate_record(groups, jsonb_build_object('id', new, 'instance', ticket)) made
    """,
    """
    INSERT INTO groupmembers SELECT made.* FROM roles JOIN groupmembers ON groupid = old,
    jsonb_populate_record(groupmembers, jsonb_build_object('id', nextval('groupmembers_id_seq'), 'groupid', new)) made
    """,
    """
    INSERT INTO members SELECT old, new, id, nextval('cachedgroupmembers_id_seq')
    FROM roles JOIN cachedgroupmembers ON groupid = old
    """,
    # Each row of a role is a direct one, which has its own id as `via`.
    """
    INSERT INTO cachedgroupmembers SELECT made.* FROM members JOIN cachedgroupmembers ON id = old_row,
    jsonb_populate_record(cachedgroupmembers, jsonb_build_object(
        'id', new_row, 'via', new_row, 'groupid', new, 'immediateparentid', new,
        'memberid', CASE WHEN memberid = old THEN new ELSE memberid END)) made
    """,
    """
    INSERT INTO messages
    SELECT ticket, transactions.id, nextval('transactions_id_seq'), CASE WHEN place = 1 THEN text ELSE %(reply)s END, at
    FROM copies, generate_series(1, %(messages)s) place, transactions
    WHERE objecttype = 'RT::Ticket' AND objectid = %(pattern)s
    AND type = CASE WHEN place = 1 THEN 'Create' ELSE 'Correspond' END ORDER BY ticket, place
    """,
    """
    INSERT INTO transactions SELECT made.* FROM messages JOIN transactions ON id = old,
    jsonb_populate_record(transactions, jsonb_build_object('id', new, 'objectid', ticket, 'created', at)) made
    """,
    """
    INSERT INTO attachments SELECT made.* FROM messages JOIN attachments ON transactionid = old,
    jsonb_populate_record(attachments, jsonb_build_object(
        'id', nextval('attachments_id_seq'), 'transactionid', new, 'content', text, 'created', at)) made
    """,
)


def fill(url: str, pattern: int, texts: Sequence[str], *, messages: int) -> list[int]:
    """Store a ticket for each of these first messages, with replies up to that many messages; return their ids in order.

    Args:
        pattern: the id of a ticket of two messages; records of mail and changes of it are not copied.
    """
    values = {"pattern": pattern, "messages": messages, "reply": TEXT.replace(SENT, "0" * 19)}
    with psycopg.connect(url) as connection:
        connection.execute(_TABLES)
        with connection.cursor().copy("COPY wanted FROM STDIN") as copy:
            for row in enumerate(texts):
                copy.write_row(row)
        for step in _STEPS:
            connection.execute(step, values)
        return [
            ticket for (ticket,) in connection.execute("SELECT ticket FROM copies ORDER BY number").fetchall()
        ]
