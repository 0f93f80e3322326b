"""The version of events that an endpoint is pinned to. There was only one before."""

from typing import Final

SQL: Final = "ALTER TABLE endpoints ADD COLUMN api_version TEXT NOT NULL DEFAULT '2026-11-01';"
