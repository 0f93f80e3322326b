"""Stores the parts of all files on disk until all are read, because related parts may be in any of them.

The newest version of a record is kept, regardless of the order of files:

- The latest version counts for a person's field, a thread, a label and a rating. A deletion follows other records of the
    same version. A record without a version is older than all others.
- A deleted or fully redacted post stays so. Otherwise the post with more redactions counts, then an internal one, because
    the source never takes back either; then the latest version.
- Among equal records, the last one counts.

The spool is a temporary SQLite database (in `SQLITE_TMPDIR` or `TMPDIR`), removed when the process ends.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from typing import Any, Final

import orjson
from msgspec import UNSET, Struct
from msgspec.structs import asdict

from deskwire.commands.convert.fields import storable
from deskwire.commands.convert.parts import (
    FINAL,
    Amendment,
    Deletion,
    ExportedPerson,
    ExportedPost,
    ExportedRating,
    ExportedThread,
    Label,
    Link,
    MergedPerson,
    Part,
    ThreadRating,
)
from deskwire.engine.core.values import replace
from deskwire.engine.events.project_events import Removal

_CACHE_KIB: Final = 32 * 1024
_PEOPLE_AT_HAND: Final = 4096
_UNKNOWN: Final = -1  # the version of a record without one
_TABLES: Final = """
CREATE TABLE people (key TEXT PRIMARY KEY, body BLOB, gone INTEGER) WITHOUT ROWID;
CREATE TABLE threads (key TEXT PRIMARY KEY, version INTEGER, gone TEXT, at INTEGER, body BLOB) WITHOUT ROWID;
CREATE TABLE posts (
    thread TEXT, key TEXT, gone TEXT, redactions INTEGER, internal INTEGER, version INTEGER, at INTEGER, opens INTEGER,
    body BLOB,
    UNIQUE (thread, key)
);
CREATE TABLE amendments (
    thread TEXT, post TEXT, what TEXT, key TEXT, at INTEGER, attachment TEXT, PRIMARY KEY (thread, post, what, key)
) WITHOUT ROWID;
CREATE TABLE labels (key TEXT PRIMARY KEY, version INTEGER, name TEXT) WITHOUT ROWID;
CREATE TABLE ratings (thread TEXT PRIMARY KEY, version INTEGER, body BLOB) WITHOUT ROWID;
"""
_KEEP_THREAD: Final = (
    "INSERT INTO threads (key, version, gone, at, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
    "version = excluded.version, gone = excluded.gone, at = excluded.at, body = excluded.body "
    "WHERE (excluded.version, excluded.gone IS NOT NULL) >= (version, gone IS NOT NULL)"
)
_KEEP_POST: Final = (
    "INSERT INTO posts (thread, key, gone, redactions, internal, version, at, opens, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (thread, key) DO UPDATE SET gone = excluded.gone, redactions = excluded.redactions, "
    "internal = excluded.internal, version = excluded.version, at = excluded.at, opens = excluded.opens, "
    "body = excluded.body WHERE (excluded.gone IS NOT NULL, excluded.redactions, excluded.internal, excluded.version) "
    ">= (gone IS NOT NULL, redactions, internal, version)"
)
_KEEP_AMENDMENT: Final = "INSERT OR REPLACE INTO amendments VALUES (?, ?, ?, ?, ?, ?)"
_KEEP_LABEL: Final = (
    "INSERT INTO labels VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET version = excluded.version, name = excluded.name "
    "WHERE excluded.version >= version"
)
_KEEP_RATING: Final = (
    "INSERT INTO ratings VALUES (?, ?, ?) ON CONFLICT (thread) DO UPDATE SET version = excluded.version, "
    "body = excluded.body WHERE excluded.version >= version"
)
_PERSON_FIELDS: Final = MergedPerson._fields[1:]

# Keys are growing numbers, or all of one length: a shorter key is older. Posts of one second are sorted by key, because exports
# may have the times of the same posts by the second or by the millisecond.
_POSTS: Final = (
    "SELECT key, gone, body FROM posts WHERE thread = ? "
    "ORDER BY coalesce(at, ?) / 1000, opens DESC, length(key), key"
)


class Spool:
    """The parts of an export by key, each from its newest record."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.executescript(
            f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -{_CACHE_KIB}; {_TABLES} BEGIN"
        )
        self.person = lru_cache(_PEOPLE_AT_HAND)(self._person)
        self.label = lru_cache(_PEOPLE_AT_HAND)(self._label)

    def close(self) -> None:
        """Remove everything."""
        self._db.close()

    def keep(self, part: Part) -> None:
        """Store a part unless a newer one with its key is stored."""
        match part:
            case ExportedPerson():
                self._keep_person(part)
            case ExportedThread():
                kept = replace(part, attributes=storable(dict(part.attributes)))
                body = orjson.dumps(kept, default=_plain)
                self._db.execute(
                    _KEEP_THREAD, (part.key, _version(part.version), None, part.created_at, body)
                )
            case ExportedPost():
                rank = (None, part.redactions, part.internal, _version(part.version))
                body = orjson.dumps(part, default=_plain)
                self._db.execute(_KEEP_POST, (part.thread, part.key, *rank, part.at, part.opens, body))
            case Deletion(thread, None, gone, version):
                self._db.execute(
                    _KEEP_THREAD, (thread, FINAL if version is None else version, gone, None, None)
                )
            case Deletion(thread, post, gone, version):
                rank_of_gone = (gone, FINAL, True, _version(version))
                self._db.execute(_KEEP_POST, (thread, post, *rank_of_gone, None, False, None))
            case Amendment():
                amendment = (part.thread, part.post, part.what, part.key, part.at, part.attachment)
                self._db.execute(_KEEP_AMENDMENT, amendment)
            case Label():
                self._db.execute(_KEEP_LABEL, (part.key, _version(part.version), part.name))
            case ThreadRating():
                rating = orjson.dumps(part.rating, default=tuple)
                self._db.execute(_KEEP_RATING, (part.thread, _version(part.version), rating))

    def _keep_person(self, person: ExportedPerson) -> None:
        """Store the fields of a person that are not older than the stored ones; a role never changes back."""
        row = self._db.execute("SELECT body FROM people WHERE key = ?", (person.key,)).fetchone()
        known: dict[str, Any] = {} if row is None else orjson.loads(row[0])
        version, changed = _version(person.version), row is None
        for name in _PERSON_FIELDS:
            value = getattr(person, name)
            if value is UNSET or (name == "role" and value is None) or (name == "gone" and not value):
                continue
            if name not in known or version >= known[name][0]:
                changed |= known.get(name) != [version, value]
                known[name] = [version, value]
        if changed:
            gone = "gone" in known
            self._db.execute(
                "INSERT OR REPLACE INTO people VALUES (?, ?, ?)", (person.key, orjson.dumps(known), gone)
            )

    def _person(self, key: str) -> MergedPerson | None:
        row = self._db.execute("SELECT body FROM people WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        return MergedPerson(key, **{name: value for name, (_, value) in orjson.loads(row[0]).items()})

    def _label(self, key: str) -> str | None:
        row = self._db.execute("SELECT name FROM labels WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def deleted_people(self) -> Iterator[str]:
        """Yield the keys of people deleted at the source."""
        for (key,) in self._db.execute("SELECT key FROM people WHERE gone = 1 ORDER BY key"):
            yield str(key)

    def deleted_threads(self) -> Iterator[str]:
        """Yield the keys of threads deleted at the source."""
        sql = "SELECT key FROM threads WHERE gone IS NOT NULL ORDER BY length(key), key"
        for (key,) in self._db.execute(sql):
            yield str(key)

    def threads(self) -> Iterator[ExportedThread]:
        """Yield the threads, oldest first."""
        self._db.execute("CREATE INDEX IF NOT EXISTS by_time ON threads (at, length(key), key)")
        sql = "SELECT key FROM threads WHERE gone IS NULL ORDER BY at, length(key), key"
        with closing(self._db.execute(sql)) as keys:
            for (key,) in keys:
                yield self._thread(key)

    def _thread(self, key: str) -> ExportedThread:
        body, rating = self._db.execute(
            "SELECT t.body, r.body FROM threads t LEFT JOIN ratings r ON r.thread = t.key WHERE t.key = ?",
            (key,),
        ).fetchone()
        values = orjson.loads(body)
        given = orjson.loads(rating) if rating is not None else values["rating"]
        return ExportedThread(**{**values, "rating": None if given is None else ExportedRating(*given)})

    def posts(self, thread: ExportedThread) -> Iterator[ExportedPost | Deletion]:
        """Yield the posts of a thread by second and key, with a deletion for each deleted one."""
        amendments = self._amendments(thread.key)
        for key, gone, body in self._db.execute(_POSTS, (thread.key, thread.created_at)):
            post = gone if body is None else with_amendments(_post(body), amendments.get(key, []))
            yield post if isinstance(post, ExportedPost) else Deletion(thread.key, key, post)
            amendments.pop(key, None)
        for key, others in amendments.items():  # posts that are in no file
            redacted: list[Removal] = ["redacted" for each in others if each.what == "text"]
            if redacted:
                yield Deletion(thread.key, key, redacted[0])

    def _amendments(self, thread: str) -> dict[str, list[Amendment]]:
        found: dict[str, list[Amendment]] = defaultdict(list)
        sql = "SELECT post, what, key, at, attachment FROM amendments WHERE thread = ?"
        for post, what, key, at, attachment in self._db.execute(sql, (thread,)):
            found[post].append(Amendment(key, thread, post, what, at, attachment))
        return found

    def homeless(self) -> Iterator[str]:
        """Yield the keys of the posts whose thread is in no file."""
        sql = (
            "SELECT key FROM posts WHERE gone IS NULL AND thread NOT IN (SELECT key FROM threads) "
            "ORDER BY thread, length(key), key"
        )
        for (key,) in self._db.execute(sql):
            yield str(key)

    def homeless_deletions(self) -> Iterator[Deletion]:
        """Yield the deletions of posts whose thread is in no file."""
        sql = (
            "SELECT thread, key, gone FROM posts WHERE gone IS NOT NULL AND thread NOT IN (SELECT key FROM threads) UNION "
            "SELECT thread, post, 'redacted' FROM amendments WHERE what = 'text' AND thread NOT IN (SELECT key FROM threads) "
            "AND (thread, post) NOT IN (SELECT thread, key FROM posts) ORDER BY 1, 2"
        )
        for thread, key, gone in self._db.execute(sql):
            yield Deletion(thread, key, gone)


def _version(version: int | None) -> int:
    return _UNKNOWN if version is None else version


def _post(body: bytes) -> ExportedPost:
    values = orjson.loads(body)
    return ExportedPost(**{**values, "links": [Link(*each) for each in values["links"]]})


def _plain(value: Any) -> dict[str, Any] | tuple[Any, ...]:
    """Return a Struct's fields by name, or a named tuple's values."""
    return asdict(value) if isinstance(value, Struct) else tuple(value)


def with_amendments(post: ExportedPost, amendments: Sequence[Amendment]) -> ExportedPost | Removal:
    """Return a post with amendments applied, or how it is gone.

    An event says that a comment was redacted, but not which words. So a version of the comment counts only if it is later than the
    event; otherwise its whole text is taken as redacted.
    """
    texts = [each for each in amendments if each.what == "text"]
    if texts and not _is_later(post, texts):
        return "redacted"
    dropped = [each for each in amendments if each.what == "attachment" and not _is_later(post, [each])]
    if dropped:
        known = {each.attachment for each in dropped}
        kept = [] if None in known else [link for link in post.links if link.id not in known]
        post = replace(post, links=kept)
    if any(each.what == "hidden" for each in amendments):
        post = replace(post, internal=True)
    return post


def _is_later(post: ExportedPost, amendments: Sequence[Amendment]) -> bool:
    """Return whether the post is later than the amendments, by its version or because it has redactions."""
    latest = max((each.at for each in amendments if each.at is not None), default=None)
    if post.version is not None and latest is not None and post.version >= latest:
        return True
    return len(amendments) == 1 and amendments[0].what == "text" and post.redactions > 0
