"""Tags of conversations, contacts and tickets with the key by which they are compared; `refold_tags` makes the keys."""

from __future__ import annotations

from typing import Any, Final

import psycopg

from deskwire.storage.postgres.schema.folding import Encoded
from deskwire.storage.postgres.schema.types import typed
from deskwire.storage.refolding import TAGGED, refold_tags

SQL: Final = typed("".join(f"ALTER TABLE {holder}_tags ADD COLUMN folded TEXT;\n" for holder, _ in TAGGED))


def fill(connection: psycopg.Connection[Any]) -> None:
    """Fill the keys, and find objects by them."""
    encoded = Encoded(connection)
    refold_tags(encoded.execute)
    for holder, _ in TAGGED:
        encoded.execute(
            f"ALTER TABLE {holder}_tags DROP CONSTRAINT {holder}_tags_pkey, ADD PRIMARY KEY (project, folded, {holder})"
        )
