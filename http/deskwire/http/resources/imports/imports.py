"""Histories from another service, in bulk (ADR 30)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import orjson
import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation, no_such_conversation
from deskwire.engine.conversations.emit import conversation_view
from deskwire.engine.core.errors import UnsupportedMediaType
from deskwire.engine.core.store import Inline
from deskwire.engine.importing.batch import import_batch
from deskwire.engine.importing.records import Kind, Record, Refusal
from deskwire.engine.ports import Reader
from deskwire.http.api.input.headers import Fields, mimetype_of
from deskwire.http.api.input.ndjson import Line, Lines
from deskwire.http.api.input.validation import Body, Flag, Query
from deskwire.http.api.problems import cut, named
from deskwire.http.api.routing import S2S, Answer, Call, Routes, Tag
from deskwire.http.resources.imports.lines import (
    LINE_BYTES,
    ExternalId,
    ImportedConversation,
    ImportedMessage,
    read_line,
)
from deskwire.http.schemas import conversations as conversation_shapes
from deskwire.http.schemas import imports as shapes
from deskwire.http.server.steady_body import Steady

routes = Routes(Tag("Imports", "Histories from another service, in bulk."), S2S)

TYPES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl")
COMMIT_LINES: Final = 500
COMMIT_BYTES: Final = 512 * 1024
"""One commit's share of the body: some ten milliseconds of the writer, who has others to serve."""

BESIDE: Final = 5
"""A share is smaller by this while other requests are at work, which wait for the commit."""

READ_LINES: Final = 100
READ_BYTES: Final = 64 * 1024
"""Read in one go, which takes about a millisecond; then others have their turn."""

REFUSED_PAUSES: Final = 6
"""How many times as long as a go with refused lines the pause behind it is, whoever is at work: they cost most."""

EVENT_LINES: Final = 100
"""The same with events, each of which is encoded and routed."""

LEAST_BYTES: Final = 64 * 1024
"""Of the body that have to come within `body_timeout_s`."""

REFUSALS_MAX: Final = 1_000
REFUSALS_BYTES: Final = 1 << 20
"""Refused lines that are named in the answer, and what they may take of it; the others are counted."""

_ID_SHOWN: Final = 256
"""Characters of a refused line's id: one more than an id may have, so that a cut one is none."""


class ImportQuery(Query):
    """How to take it in: with `events` everything new is told on all channels, as if it happened now."""

    events: Flag = False


class ExternalQuery(Query):
    """Which conversation: by the id that it had where it came from."""

    external_id: ExternalId


@routes.add(
    "POST",
    "/s2s/import",
    operation_id="importHistory",
    query=ImportQuery,
    streamed=True,
    limit=None,
    lines=(ImportedConversation, ImportedMessage),
    answer=shapes.ImportReport,
    errors=("body_timeout", "unsupported_media_type", "project_not_found"),
    records=("history.imported",),
)
async def import_history(call: Call[Body, ImportQuery]) -> Answer:
    """Take in conversations with their messages as they were, as NDJSON of any length.

    A line that can't be taken is named in the answer and holds up no other. Every conversation and message has an id of
    yours: sent again it changes nothing, so after a broken connection the same lines are sent once more.
    """
    _check(call.incoming.headers)
    with call.services.load.importing(call.project.rowid):
        intake, lines = Intake(call), Lines(LINE_BYTES)
        async for piece in Steady(call.incoming.body, call.services.limits.body_timeout_s, LEAST_BYTES):
            await intake.take(lines.feed(piece))
        await intake.take(lines.end())
        await intake.commit()
        return intake.report()


@routes.add(
    "GET",
    "/s2s/import/conversation",
    operation_id="findImported",
    query=ExternalQuery,
    answer=conversation_shapes.Conversation,
    errors=("conversation_not_found",),
)
async def find_imported(call: Call[Body, ExternalQuery]) -> Answer:
    """Fetch a conversation that was imported, by the id that it had where it came from."""
    wanted = call.query.external_id
    state, contact = await call.services.store.read(
        Inline(lambda reader: _found(reader, call.project, wanted))
    )
    return conversation_view(state, contact, call.project.id)


class Intake:
    """The lines of a request on their way into the database, a commit's share at a time."""

    def __init__(self, call: Call[Any, ImportQuery]) -> None:
        self._project = call.project
        self._load = call.services.load
        self._store = call.services.store
        self._clock = call.services.clock
        shown = call.services.shelf.links.shown
        self._show = partial(shown, now=self._clock()) if call.query.events else None
        self._most = EVENT_LINES if call.query.events else COMMIT_LINES
        self._records: list[Record] = []
        self._bytes = 0
        self._lines = 0
        self._imported: Counter[Kind] = Counter()
        self._existing: Counter[Kind] = Counter()
        self._refused = 0
        self._refusals: list[dict[str, Any]] = []
        self._refusals_bytes = 0

    async def take(self, lines: Sequence[Line]) -> None:
        """Read lines, and commit whenever there is a share of them. Raises Unavailable."""
        now = self._clock()
        self._lines += len(lines)
        for some in _goes(lines):
            began = trio.current_time()
            read = [read_line(line, now) for line in some]
            refused = any(isinstance(found, Refusal) for found in read)
            await _leave_a_turn(trio.current_time() - began, REFUSED_PAUSES if refused else self._others)
            for line, found in zip(some, read, strict=True):
                if isinstance(found, Refusal):
                    self._refuse([found])
                    continue
                self._records.append(found)
                self._bytes += len(line.content or b"")
                if len(self._records) >= self._share or self._bytes >= COMMIT_BYTES:
                    await self.commit()

    async def commit(self) -> None:
        """Have on disk what was read. Raises Unavailable, NotFound."""
        if not self._records:
            return
        records, self._records, self._bytes = self._records, [], 0
        project, at, show = self._project, self._clock(), self._show
        began = trio.current_time()
        outcome = await self._store.write(lambda tx: import_batch(tx, project, records, at, show))
        if self._others:  # they get as much time
            await trio.sleep(trio.current_time() - began)
        self._imported += outcome.imported
        self._existing += outcome.existing
        self._refuse(outcome.refused)

    @property
    def _others(self) -> bool:
        """Whether other requests are at work."""
        return self._load.requests > self._load.imports

    @property
    def _share(self) -> int:
        """Records that are committed together."""
        return self._most // BESIDE if self._others else self._most

    def _refuse(self, refused: list[Refusal]) -> None:
        """Count refused lines, and keep what is said of those for which there is room in the answer."""
        self._refused += len(refused)
        for each in refused:
            if len(self._refusals) >= REFUSALS_MAX or self._refusals_bytes >= REFUSALS_BYTES:
                break
            shown = _refusal(each)
            self._refusals.append(shown)
            self._refusals_bytes += len(orjson.dumps(shown))

    def report(self) -> Mapping[str, Any]:
        """What came of it all."""
        return {
            "lines": self._lines,
            "imported": _counts(self._imported),
            "existing": _counts(self._existing),
            "refused": self._refused,
            "refusals": sorted(self._refusals, key=lambda each: int(each["line"])),
            "refusalsLeftOut": self._refused - len(self._refusals),
        }


def _counts(counted: Counter[Kind]) -> dict[str, int]:
    return {"conversations": counted["conversation"], "messages": counted["message"]}


def _refusal(refusal: Refusal) -> dict[str, Any]:
    known = refusal.external_id
    return {
        "line": refusal.line,
        "externalId": None if known is None else cut(known, _ID_SHOWN),
        "errors": named(refusal.problems),
        "errorsTotal": len(refusal.problems) + refusal.unnamed,
    }


async def _leave_a_turn(took_s: float, times: int) -> None:
    """Let others have so many times as much time as that took."""
    await trio.sleep(took_s * times)  # also without any time a checkpoint


def _goes(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """The lines in runs, each of which is read in one go."""
    run: list[Line] = []
    size = 0
    for line in lines:
        run.append(line)
        size += len(line.content or b"")
        if len(run) == READ_LINES or size >= READ_BYTES:
            yield run
            run, size = [], 0
    if run:
        yield run


def _check(headers: Fields) -> None:
    """Raises UnsupportedMediaType for what is not NDJSON, or is packed."""
    kind = mimetype_of(headers.get("content-type"))
    if kind not in TYPES:
        raise UnsupportedMediaType(f"The body must be {TYPES[0]}, not {kind or 'of no type'}.")
    coding = (headers.get("content-encoding") or "identity").strip().lower()
    if coding != "identity":
        raise UnsupportedMediaType(f"The body must not be packed, and it is {coding}: unpack it first.")


def _found(reader: Reader, project: Project, external_id: str) -> tuple[Conversation, Contact]:
    known = reader.imported_conversations(project.rowid, {external_id}).get(external_id)
    found = None if known is None else reader.conversation(project.rowid, known.id)
    if found is None:
        raise no_such_conversation()
    return found
