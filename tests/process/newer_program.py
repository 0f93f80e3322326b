"""The program as its next version may be: it has one more migration, beside which the one of today can go on.

`python newer_program.py PYTHON -m deskwire …` runs what follows as that version.
"""

from __future__ import annotations

import sys

from deskwire.storage.postgres.migrations import list as known

NEWER = known.Migration(
    "m9999_newer",
    oldest_program=known.MIGRATIONS[-1].name,
    sql="CREATE TABLE newer_things (rowid bigint PRIMARY KEY); ALTER TABLE messages ADD COLUMN newer text",
)

if __name__ == "__main__":
    known.MIGRATIONS = (*known.MIGRATIONS, NEWER)  # type: ignore[misc, assignment]  # before anybody takes the list
    sys.argv = ["deskwire", *sys.argv[sys.argv.index("deskwire") + 1 :]]
    from deskwire.__main__ import main

    main()
