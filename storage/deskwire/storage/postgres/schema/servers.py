"""The newest server that the installation has had: its system identifier, and the timeline that it wrote on."""

from __future__ import annotations

from typing import Final

from deskwire.storage.postgres.schema.types import typed

SQL: Final = typed("""
ALTER TABLE installation ADD COLUMN system_id TEXT, ADD COLUMN timeline bigint NOT NULL DEFAULT 0
""")
