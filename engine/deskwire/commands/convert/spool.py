"""The parts of all files, on disk until every file is read: what belongs together may stand anywhere in them.

It is an SQLite database of its own in the folder for temporary files (`SQLITE_TMPDIR`, `TMPDIR`), and goes with the process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import asdict

from deskwire.commands.convert.fields import storable
from deskwire.commands.convert.parts import Label, Part, Person, Post, Rating, Thread, ThreadRating
from deskwire.engine.core.values import replace

_CACHE_KIB: Final = 32 * 1024
_PEOPLE_AT_HAND: Final = 4096
_TABLES: Final = """
CREATE TABLE people (key TEXT PRIMARY KEY, body BLOB) WITHOUT ROWID;
CREATE TABLE threads (key TEXT PRIMARY KEY, at INTEGER, body BLOB) WITHOUT ROWID;
CREATE TABLE posts (place INTEGER PRIMARY KEY, thread TEXT, key TEXT, at INTEGER, body BLOB, UNIQUE (thread, key));
CREATE TABLE labels (key TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID;
CREATE TABLE ratings (thread TEXT PRIMARY KEY, body BLOB) WITHOUT ROWID;
"""


class Spool:
    """Parts, kept by their keys. One that comes again replaces the one before, as exports by time overlap."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.executescript(
            f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -{_CACHE_KIB}; {_TABLES} BEGIN"
        )
        self._place = 0
        self.person = lru_cache(_PEOPLE_AT_HAND)(self._person)
        self.label = lru_cache(_PEOPLE_AT_HAND)(self._label)

    def close(self) -> None:
        """Remove everything."""
        self._db.close()

    def keep(self, part: Part) -> None:
        """Keep a part."""
        match part:
            case Person():
                self._keep_person(part)
            case Thread():
                kept = replace(part, attributes=storable(dict(part.attributes)))
                row = (part.key, part.created_at, orjson.dumps(kept, default=_plain))
                self._db.execute("INSERT OR REPLACE INTO threads (key, at, body) VALUES (?, ?, ?)", row)
            case Post():
                self._place += 1
                values = (self._place, part.thread, part.key, part.at, orjson.dumps(part, default=_plain))
                self._db.execute("INSERT OR REPLACE INTO posts VALUES (?, ?, ?, ?, ?)", values)
            case Label():
                self._db.execute("INSERT OR REPLACE INTO labels VALUES (?, ?)", part)
            case ThreadRating():
                row_of_rating = (part.thread, orjson.dumps(part.rating, default=tuple))
                self._db.execute("INSERT OR REPLACE INTO ratings VALUES (?, ?)", row_of_rating)

    def _keep_person(self, person: Person) -> None:
        """Keep a person; what one mention lacks another has, and the later one counts."""
        known = self._person(person.key)
        if known is not None:
            pairs = zip(person, known, strict=True)
            person = Person._make(old if new is None else new for new, old in pairs)
        if person != known:
            body = orjson.dumps(person, default=tuple)
            self._db.execute("INSERT OR REPLACE INTO people VALUES (?, ?)", (person.key, body))

    def _person(self, key: str) -> Person | None:
        row = self._db.execute("SELECT body FROM people WHERE key = ?", (key,)).fetchone()
        return None if row is None else Person._make(orjson.loads(row[0]))

    def _label(self, key: str) -> str | None:
        row = self._db.execute("SELECT name FROM labels WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def threads(self) -> Iterator[Thread]:
        """Yield the threads, the oldest first."""
        self._db.execute("CREATE INDEX IF NOT EXISTS by_time ON threads (at, key)")
        with closing(self._db.execute("SELECT key FROM threads ORDER BY at, key")) as keys:
            for (key,) in keys:
                yield self._thread(key)

    def _thread(self, key: str) -> Thread:
        body, rating = self._db.execute(
            "SELECT t.body, r.body FROM threads t LEFT JOIN ratings r ON r.thread = t.key WHERE t.key = ?",
            (key,),
        ).fetchone()
        values = orjson.loads(body)
        given = orjson.loads(rating) if rating is not None else values["rating"]
        return Thread(**{**values, "rating": None if given is None else Rating(*given)})

    def posts(self, thread: Thread) -> Iterator[Post]:
        """Yield the posts of a thread in the order of their times; those of one time as they came."""
        rows = self._db.execute(
            "SELECT body FROM posts WHERE thread = ? ORDER BY coalesce(at, ?), place",
            (thread.key, thread.created_at),
        )
        for (body,) in rows:
            yield Post(**orjson.loads(body))

    def homeless(self) -> Iterator[str]:
        """Yield the keys of the posts whose thread is in no file."""
        sql = "SELECT key FROM posts WHERE thread NOT IN (SELECT key FROM threads) ORDER BY thread, place"
        for (key,) in self._db.execute(sql):
            yield str(key)


def _plain(value: Any) -> dict[str, Any] | tuple[Any, ...]:
    """Return a Struct's fields by name, and what a named tuple has."""
    return asdict(value) if isinstance(value, Struct) else tuple(value)
