"""Keeps a copy of a project's conversations and messages in a database of yours."""

from deskwire_sdk._async.mirror import AsyncMirror, AsyncMirrorStore, AsyncSQLiteStore
from deskwire_sdk._sync.mirror import Mirror, MirrorStore, SQLiteStore

__all__ = ["AsyncMirror", "AsyncMirrorStore", "AsyncSQLiteStore", "Mirror", "MirrorStore", "SQLiteStore"]
