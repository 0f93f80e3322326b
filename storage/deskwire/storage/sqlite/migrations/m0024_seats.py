"""The leases of stream channels as rows that several nodes can share (ADR 60).

`dropped_at` and the times in `takeovers` are milliseconds; `event` is the id of the newest event at `position`; `wanted` is
what another node asks the holder's node for. A node that has the store to itself leaves all of it as a takeover wrote it.
"""

from typing import Final

SQL: Final = """
ALTER TABLE consumers ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE consumers ADD COLUMN incarnation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE consumers ADD COLUMN connected INTEGER NOT NULL DEFAULT 0;
ALTER TABLE consumers ADD COLUMN dropped_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE consumers ADD COLUMN takeovers TEXT NOT NULL DEFAULT '[]';
ALTER TABLE consumers ADD COLUMN event TEXT;
ALTER TABLE consumers ADD COLUMN wanted TEXT;
CREATE INDEX consumers_wanted ON consumers (incarnation) WHERE wanted IS NOT NULL;
"""
