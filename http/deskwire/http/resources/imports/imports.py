"""Bulk imports of conversations from another service (ADR 30)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import orjson
import trio

from deskwire.engine.accounts.machines import check_still_valid
from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation, no_such_conversation
from deskwire.engine.conversations.events import conversation_view
from deskwire.engine.core.errors import Problem, UnsupportedMediaType
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.importing.batch import import_batch
from deskwire.engine.importing.records import (
    DeletionRecord,
    ImportOutcome,
    MessageRecord,
    Record,
    RecordKind,
    RefusedLine,
)
from deskwire.engine.importing.withdrawals import about
from deskwire.engine.ports import Reader, Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.body_timeout import TimedBody
from deskwire.http.api.input.headers import Fields, mimetype_of
from deskwire.http.api.input.ndjson import NdjsonLine, NdjsonReader
from deskwire.http.api.input.validation import Body, Flag, Query
from deskwire.http.api.problems import cut, named
from deskwire.http.api.routing import Routes, Tag, s2s
from deskwire.http.resources.conversations.operations import WRITE_AS_USER
from deskwire.http.resources.imports.lines import (
    LINE_BYTES,
    ExternalId,
    ImportedConversation,
    ImportedDeletion,
    ImportedMessage,
    read_line,
)
from deskwire.http.resources.imports.withdrawals import withdraw
from deskwire.http.schemas import conversations as conversation_shapes
from deskwire.http.schemas import imports as shapes

_NEEDED: Final = ("projects.manage", "conversations.manage", "conversations.reply")

routes = Routes(
    Tag("Imports", "Import conversations and their messages from another service, in bulk."),
    s2s(*_NEEDED),
)

TYPES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl")
COMMIT_LINES: Final = 500
COMMIT_BYTES: Final = 512 * 1024
"""Bytes of the body per commit, which take the writer some ten milliseconds."""

BESIDE: Final = 5
"""The factor by which a commit is smaller while other requests wait for the writer."""

READ_LINES: Final = 100
READ_BYTES: Final = 64 * 1024
"""Bytes of the body read at once, in about a millisecond, before other requests get a turn."""

REFUSED_PAUSES: Final = 6
"""Pause after lines with refusals, as a multiple of their time: refused lines are the most expensive."""

EVENT_LINES: Final = 100  # per commit of an import with events, which are each encoded and routed

LEAST_BYTES: Final = 64 * 1024  # of the body must arrive within `body_timeout_s`

REFUSALS_MAX: Final = 1_000
REFUSALS_BYTES: Final = 1 << 20
"""Maximum refused lines in the response, and their bytes; further ones are only counted."""

_ID_SHOWN: Final = 256
"""Characters shown of a refused line's id: one more than an id may have, so that a truncated id is not valid."""


class ImportQuery(Query):
    """The options of an import. With `events`, events for all new objects are sent on all channels, as if they happened now."""

    events: Flag = False


class ExternalQuery(Query):
    """The conversation to fetch, by its id in the original service."""

    external_id: ExternalId


@routes.add(
    "POST",
    "/s2s/import",
    operation_id="importHistory",
    query=ImportQuery,
    streamed=True,
    limit=None,
    lines=(ImportedConversation, ImportedMessage, ImportedDeletion),
    answer=shapes.ImportReport,
    errors=("body_timeout", "unsupported_media_type", "project_not_found"),
    records=("history.imported",),
)
async def import_history(call: Call[Body, ImportQuery]) -> Answer:
    """Import conversations with their messages, as NDJSON of any length.

    The response names the lines that can't be imported; the other lines are imported. Every
    conversation and message has your own id. An id that was imported before changes nothing, so after a broken
    connection you can send the same lines again. The deletion of an imported object is a separate line, and a redacted
    message is a line with `redacted`: both work like the calls for them, with their events.

    A machine credential also needs the permission `members.manage` for messages by users of this service.
    """
    _check(call.incoming.headers)
    with call.services.admission.importing(call.project.rowid):
        intake, lines = ImportIntake(call), NdjsonReader(LINE_BYTES)
        async for piece in TimedBody(call.incoming.body, call.services.limits.body_timeout_s, LEAST_BYTES):
            await intake.take(lines.feed(piece))
        await intake.take(lines.end())
        await intake.commit()
        return intake.report()


@routes.add(
    "GET",
    "/s2s/import/conversation",
    s2s("projects.manage", "conversations.read"),
    operation_id="findImported",
    query=ExternalQuery,
    answer=conversation_shapes.Conversation,
    errors=("conversation_not_found",),
)
async def find_imported(call: Call[Body, ExternalQuery]) -> Answer:
    """Fetch an imported conversation by its id in the original service."""
    external_id = call.query.external_id
    state, contact = await call.services.store.read(
        InlineQuery(lambda reader: _find(reader, call.project, external_id))
    )
    return conversation_view(state, contact, call.project.id)


class ImportIntake:
    """Reads the lines of an import and commits them in batches."""

    def __init__(self, call: Call[Any, ImportQuery]) -> None:
        self._call = call
        self._project = call.project
        self._credential = None if call.access.machine is None else call.access.authorizes_as
        self._as_users = call.access.machine is None or WRITE_AS_USER in call.access.permissions
        self._load = call.services.admission
        self._store = call.services.store
        self._clock = call.services.clock
        shown = call.services.uploads.links.shown
        self._show = partial(shown, now=self._clock()) if call.query.events else None
        self._most = EVENT_LINES if call.query.events else COMMIT_LINES
        self._records: list[Record] = []
        self._bytes = 0
        self._lines = 0
        self._imported: Counter[RecordKind] = Counter()
        self._existing: Counter[RecordKind] = Counter()
        self._deleted: Counter[RecordKind] = Counter()
        self._redacted = 0
        self._refusals = _NamedLines()
        self._doubts = _NamedLines()

    async def take(self, lines: Sequence[NdjsonLine]) -> None:
        """Read lines, and commit each full batch. Raises Unavailable and NotFound."""
        now = self._clock()
        self._lines += len(lines)
        for some in _goes(lines):
            began = trio.current_time()
            read = [read_line(line, now) for line in some]
            refused = any(isinstance(outcome, RefusedLine) for outcome in read)
            await _leave_a_turn(trio.current_time() - began, REFUSED_PAUSES if refused else self._others)
            for line, outcome in zip(some, read, strict=True):
                if isinstance(outcome, RefusedLine):
                    self._refusals.add([outcome])
                    continue
                if isinstance(outcome, DeletionRecord):
                    await self.commit()
                    await self._delete(outcome)
                    continue
                self._records.append(outcome)
                self._bytes += len(line.content or b"")
                if len(self._records) >= self._share or self._bytes >= COMMIT_BYTES:
                    await self.commit()

    async def commit(self) -> None:
        """Commit the records read so far. Raises Unavailable, NotFound, and Unauthenticated or Forbidden."""
        if not self._records:
            return
        records, self._records, self._bytes = self._records, [], 0
        project, at, show, as_users = self._project, self._clock(), self._show, self._as_users
        began = trio.current_time()

        def job(tx: Transaction) -> ImportOutcome:
            if self._credential is not None:  # the credential may have ended since the import began
                check_still_valid(tx, self._credential, _NEEDED, at)
            return import_batch(tx, project, records, at, show, as_users=as_users)

        outcome = await self._store.write(job)
        if self._others:  # other requests get as much time
            await trio.sleep(trio.current_time() - began)
        self._imported += outcome.imported
        self._existing += outcome.existing
        self._refusals.add(outcome.refused)
        self._doubts.add(outcome.doubted)
        for record in outcome.redacted:
            await self._redact(record)

    async def _delete(self, record: DeletionRecord) -> None:
        kind: RecordKind = "conversation" if record.message is None else "message"
        match await withdraw(self._call, record):
            case "done":
                self._deleted[kind] += 1
            case "nothing":
                self._existing[kind] += 1
            case problem:
                self._refuse(record, problem)

    async def _redact(self, record: MessageRecord) -> None:
        match await withdraw(self._call, record):
            case "done":
                self._redacted += 1
            case "nothing":
                self._existing["message"] += 1
            case problem:
                self._refuse(record, problem)

    def _refuse(self, record: DeletionRecord | MessageRecord, problem: Problem) -> None:
        self._refusals.add([RefusedLine(record.line, about(record), [problem])])

    @property
    def _others(self) -> bool:
        """Return whether requests other than imports are in progress."""
        return self._load.requests > self._load.imports

    @property
    def _share(self) -> int:
        """Return the number of records per commit."""
        return self._most // BESIDE if self._others else self._most

    def report(self) -> Mapping[str, Any]:
        """Return the report of the import."""
        return {
            "lines": self._lines,
            "imported": _counts(self._imported),
            "existing": _counts(self._existing),
            "deleted": _counts(self._deleted),
            "redacted": self._redacted,
            "refused": self._refusals.count,
            "refusals": self._refusals.in_order(),
            "refusalsLeftOut": self._refusals.left_out,
            "doubtful": self._doubts.count,
            "doubts": self._doubts.in_order(),
            "doubtsLeftOut": self._doubts.left_out,
        }


class _NamedLines:
    """Lines with their problems, limited to the space in a response; all lines are counted."""

    def __init__(self) -> None:
        self.count = 0
        self._shown: list[dict[str, Any]] = []
        self._bytes = 0

    def add(self, lines: Sequence[RefusedLine]) -> None:
        """Count lines, and keep those that fit."""
        self.count += len(lines)
        for each in lines:
            if len(self._shown) >= REFUSALS_MAX or self._bytes >= REFUSALS_BYTES:
                break
            shown = _refusal(each)
            self._shown.append(shown)
            self._bytes += len(orjson.dumps(shown))

    def in_order(self) -> Sequence[Mapping[str, Any]]:
        """Return the kept lines in order."""
        return sorted(self._shown, key=lambda each: int(each["line"]))

    @property
    def left_out(self) -> int:
        """Return the number of lines that are only counted."""
        return self.count - len(self._shown)


def _counts(counted: Counter[RecordKind]) -> dict[str, int]:
    return {"conversations": counted["conversation"], "messages": counted["message"]}


def _refusal(refusal: RefusedLine) -> dict[str, Any]:
    known = refusal.external_id
    return {
        "line": refusal.line,
        "externalId": None if known is None else cut(known, _ID_SHOWN),
        "errors": named(refusal.problems),
        "errorsTotal": len(refusal.problems) + refusal.unnamed,
    }


async def _leave_a_turn(took_s: float, times: int) -> None:
    """Pause for a multiple of the time taken, so that other requests get a turn."""
    await trio.sleep(took_s * times)  # a checkpoint even for zero seconds


def _goes(lines: Sequence[NdjsonLine]) -> Iterator[Sequence[NdjsonLine]]:
    """Yield the lines in groups that are each read at once."""
    run: list[NdjsonLine] = []
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
    """Raise UnsupportedMediaType if a body is not NDJSON by its headers."""
    kind = mimetype_of(headers.get("content-type"))
    if kind not in TYPES:
        raise UnsupportedMediaType(f"The body must be {TYPES[0]}, not {kind or 'without a type'}.")


def _find(reader: Reader, project: Project, external_id: str) -> tuple[Conversation, Contact]:
    known = reader.imported_conversations(project.rowid, {external_id}).get(external_id)
    conversation = None if known is None else reader.conversation(project.rowid, known.id)
    if conversation is None:
        raise no_such_conversation()
    return conversation
