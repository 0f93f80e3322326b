"""Kept responses by the object that they show (ADR 24).

`near` is the part of an id that says its time, if the response shows the object in its request's path, and else empty.
With it those about one object stand together in the index by which all are found, so that the new ones of a commit are on
few of its pages. The second index has those about something else alone. It says `length(near) = 0` because a
statement with `near = ?` would be compiled anew for each value if an index were for `near = ''`.
"""

from typing import Final

from deskwire.storage.sqlite.migrations.m0011_kept_answers import SHOWN_BY

_SHOWN_BY: Final = {
    **SHOWN_BY,
    "snippets": ("DELETE ON snippets", "old.id"),
    "machine_credentials": (
        "UPDATE OF revoked_at ON machine_credentials WHEN new.revoked_at IS NOT NULL",
        "old.id",
    ),
}
_EMPTIED: Final = "    UPDATE kept_answers SET near = '', subject = NULL, sealed = NULL WHERE"

SQL: Final = (
    "".join(f"DROP TRIGGER kept_answers_of_{name};\n" for name in _SHOWN_BY)
    + """
CREATE TABLE kept_answers_by_object (
    rowid INTEGER PRIMARY KEY, near TEXT NOT NULL DEFAULT '', name BLOB NOT NULL, fingerprint BLOB NOT NULL, subject TEXT,
    sealed BLOB, at INTEGER NOT NULL
) STRICT;
INSERT INTO kept_answers_by_object (rowid, name, fingerprint, subject, sealed, at)
    SELECT rowid, name, fingerprint, subject, sealed, at FROM kept_answers;
DROP TABLE kept_answers;
ALTER TABLE kept_answers_by_object RENAME TO kept_answers;
CREATE INDEX kept_answers_by_name ON kept_answers (near, substr(name, 1, 8));
CREATE INDEX kept_answers_by_subject ON kept_answers (subject) WHERE length(near) = 0 AND subject IS NOT NULL;
"""
    + "".join(
        f"CREATE TRIGGER kept_answers_of_{name} AFTER {event} BEGIN\n"
        f"{_EMPTIED} near = substr({subject}, 5, 10) AND subject = {subject};\n"
        f"{_EMPTIED} length(near) = 0 AND subject = {subject}; END;\n"
        for name, (event, subject) in _SHOWN_BY.items()
    )
)
