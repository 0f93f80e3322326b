"""One commit of an import: stores new records, counts existing ones and refuses others with a reason.

Each batch reads the database again, because conversations may have got messages or may have been deleted, and contacts
erased, since the batch before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Final

from deskwire.engine.accounts.people import Assignee, Project
from deskwire.engine.accounts.roles import assignable_user
from deskwire.engine.audit.audited_changes import imported
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.errors import NotFound, Problem
from deskwire.engine.core.folding import address_key
from deskwire.engine.core.ids import fresh_ids
from deskwire.engine.importing.ports import ImportBatchTransaction, Imported
from deskwire.engine.importing.records import (
    ConversationRecord,
    ImportOutcome,
    MessageRecord,
    Record,
    RecordKind,
    RefusedLine,
    fingerprint,
    is_same,
)
from deskwire.engine.importing.storing import store_silently, store_with_events
from deskwire.engine.importing.thread import ConversationImport
from deskwire.engine.importing.times import duration_known
from deskwire.engine.uploads.links import AttachmentsView
from deskwire.engine.uploads.upload import Attachment, unknown_upload

_NO_AUTHOR: Final = (None, None)
_NOT_AS_USER: Final = "A machine credential writes as a user only with the permission members.manage; without an id any name is taken."


def import_batch(
    tx: ImportBatchTransaction,
    project: Project,
    records: Sequence[Record],
    at: int,
    show: AttachmentsView | None,
    *,
    as_users: bool = True,
) -> ImportOutcome:
    """Import records at time `at` (ms) and return the outcome. A refused record does not affect the others.

    Args:
        show: gives attachments their URLs in events; None for an import without events.
        as_users: whether messages may have users of the project as their authors.

    Raises NotFound (`project_not_found`) if the project has been removed.
    """
    if tx.project(project.id) is None:
        raise NotFound("The project has been removed.", code="project_not_found")
    batch = _Batch(tx, project, records, at, as_users)
    for record in records:
        if isinstance(record, MessageRecord):
            batch.take_message(record)
        else:
            batch.take_conversation(record)
    changed = [thread for thread in batch.threads.values() if thread.before is None or thread.additions]
    if show is None:
        store_silently(tx, project, changed, at)
    else:
        store_with_events(tx, project, changed, at, show)
    new = batch.outcome.imported
    tx.record(*imported(project, new["conversation"], new["message"]))
    return batch.outcome


class _Batch:
    """A batch in progress, with the conversations of its records and the outcome so far."""

    def __init__(
        self, tx: ImportBatchTransaction, project: Project, records: Sequence[Record], at: int, as_users: bool
    ) -> None:
        self.outcome = ImportOutcome()
        self.threads: dict[str, ConversationImport] = {}
        self._tx = tx
        self._project = project
        self._at = at
        self._as_users = as_users
        self._member: Callable[[str], str | None] = cache(partial(tx.member_name, project.organisation))
        self._user_to_assign: Callable[[str], tuple[str | None, Problem | None]] = cache(
            lambda user_id: assignable_user(tx, project.organisation, user_id, "/assignee/id")
        )
        self._team: Callable[[str], str | None] = cache(partial(tx.team_name, project.rowid))
        messages = [record for record in records if isinstance(record, MessageRecord)]
        self._ids = iter(fresh_ids("msg", at, len(messages)))
        begun = [record for record in records if isinstance(record, ConversationRecord)]
        self._conversation_ids = iter(fresh_ids("cnv", at, len(begun)))
        self._contact_ids = iter(fresh_ids("con", at, len(begun)))
        user_ids = {record.contact.user_id for record in begun}
        self._contacts = tx.contacts_of(project.rowid, user_ids)
        self._contacts.update(tx.merged_contacts(project.rowid, user_ids - self._contacts.keys()))
        self._addressed: dict[str, Contact] = {}
        """Existing contacts whose user id is an e-mail address, by that address in lower case."""
        named = {record.external_id for record in begun}
        self._known = tx.imported_conversations(
            project.rowid, named | {record.conversation for record in messages}
        )
        self._seen = self._seen_messages(messages)

    def take_conversation(self, record: ConversationRecord) -> None:
        """Add a conversation, unless it exists."""
        if self._is_known(record):
            return
        assignee, problems = self._assignee(record)
        if problems:
            self.outcome.refused.append(RefusedLine(record.line, record.external_id, problems))
            return
        contact = self._contact(record)
        if record.channel_id is not None or record.client_id is not None:
            record = self._of_channel(record, contact)
        state = _begun(next(self._conversation_ids), record, self._project.rowid, self._at, assignee)
        self.threads[record.external_id] = ConversationImport(
            record.external_id,
            contact,
            None,
            state,
            fingerprint=fingerprint(record),
            duration_known=duration_known(record),
        )
        self._imported("conversation", record)

    def take_message(self, record: MessageRecord) -> None:
        """Add a message to its conversation, unless it exists."""
        thread = self._thread(record.conversation)
        if thread is None:
            message = "No conversation with this id was imported; its line must come before the lines of its messages."
            self._refuse(record, Problem("/conversation", "unknown", message))
            return
        place = (record.conversation, record.external_id)
        existing = self._seen.get(place)
        if existing is not None:
            if is_same(record, existing):
                self.outcome.existing["message"] += 1
            elif record.redacted:
                self.outcome.redacted.append(record)
            else:
                self._conflict("message", record)
            return
        digest = fingerprint(record)
        author, unknown = self._author(record, thread.contact)
        attachments, missing = self._attachments(record.attachments) if record.attachments else ((), ())
        repeated = self._repeated(record, thread)
        if unknown or missing or repeated:
            self._refuse(record, *unknown, *missing, *repeated)
            return
        thread.add(next(self._ids), record, author, attachments, digest)
        self._seen[place] = digest
        self._imported("message", record)

    def _repeated(self, record: MessageRecord, thread: ConversationImport) -> tuple[Problem, ...]:
        """Return the problem of a message whose client id another message of the conversation has."""
        client_id = record.client_id
        if client_id is None:
            return ()
        stored = thread.before is not None and self._tx.message_by_client_id(thread.before.rowid, client_id)
        if not stored and not thread.adds(client_id):
            return ()
        message = "Another message of the conversation has this clientId."
        return (Problem("/clientId", "conflict", message),)

    def _of_channel(self, record: ConversationRecord, contact: Contact) -> ConversationRecord:
        """Return the record without a channel that the project does not have, and without a client id of another conversation.

        Both are doubts: the conversation is imported all the same.
        """
        doubts = list(record.doubts)
        channel_id, client_id = record.channel_id, record.client_id
        if channel_id is not None:
            channel = self._tx.channel(channel_id)
            if channel is None or channel.project != self._project.rowid:
                message = "There is no such channel in this project; the conversation is imported without it."
                doubts.append(Problem("/channelId", "unknown", message))
                channel_id = None
        if client_id is not None:
            among = any(
                thread.contact.rowid == contact.rowid and thread.state.client_id == client_id
                for thread in self.threads.values()
            )
            if among or self._tx.conversation_by_client_id(contact.rowid, client_id) is not None:
                message = "Another conversation of the contact has this clientId; it is imported without it."
                doubts.append(Problem("/clientId", "conflict", message))
                client_id = None
        return record._replace(channel_id=channel_id, client_id=client_id, doubts=tuple(doubts))

    def _seen_messages(self, messages: Sequence[MessageRecord]) -> dict[tuple[str, str], int]:
        """Return the fingerprints of the messages that exist."""
        known = self._known
        external_keys = {
            (known[record.conversation].rowid, record.external_id): (record.conversation, record.external_id)
            for record in messages
            if record.conversation in known
        }
        fingerprints = self._tx.imported_messages(external_keys.keys())
        return {external_keys[key]: digest for key, digest in fingerprints.items()}

    def _is_known(self, record: ConversationRecord) -> bool:
        """Return whether the conversation exists; count it, or refuse it if its record differs."""
        known, begun = self._known.get(record.external_id), self.threads.get(record.external_id)
        if known is not None:
            stored, owner = known.fingerprint, known.user_id
        elif begun is not None:
            stored, owner = begun.fingerprint, begun.contact.user_id
        else:
            return False
        contact = self._contacts.get(record.contact.user_id)
        if not is_same(record, stored):
            self._conflict("conversation", record)
        elif owner != (record.contact.user_id if contact is None else contact.user_id):
            message = f"The conversation was brought in as one of {owner!r}, whose it stays; merge the contacts if they are one."
            self._refuse(record, Problem("/contact/userId", "conflict", message))
        else:
            self.outcome.existing["conversation"] += 1
        return True

    def _thread(self, external_id: str) -> ConversationImport | None:
        thread = self.threads.get(external_id)
        if thread is None and (known := self._known.get(external_id)) is not None:
            thread = self.threads[external_id] = self._stored(external_id, known)
        return thread

    def _stored(self, external_id: str, known: Imported) -> ConversationImport:
        stored = self._tx.conversation(self._project.rowid, known.id)
        assert stored is not None, "a mark refers to its conversation"
        state, _ = stored
        claimed = self._tx.claim(state)
        return ConversationImport(external_id, claimed.contact, state, state, dict(claimed.routed))

    def _contact(self, record: ConversationRecord) -> Contact:
        """Return the contact. An existing or merged one stays unchanged because its data is newer than the import."""
        person = record.contact
        known = self._contacts.get(person.user_id) or self._addressed.get(address_key(person.user_id))
        if known is not None:
            return known
        since = record.created_at if person.created_at is None else person.created_at
        identity = (person.name, person.email, person.phone, person.avatar)
        new = Contact(0, next(self._contact_ids), person.user_id, since, since, *identity)
        contact = self._contacts[person.user_id] = self._tx.insert_contact(self._project.rowid, new)
        if "@" in person.user_id:
            self._addressed[address_key(person.user_id)] = contact
        return contact

    def _assignee(self, record: ConversationRecord) -> tuple[Assignee | None, tuple[Problem, ...]]:
        if record.assignee is None:
            return None, ()
        kind, assignee_id = record.assignee
        if kind == "user":
            name, problem = self._user_to_assign(assignee_id)
        else:
            name = self._team(assignee_id)
            problem = Problem("/assignee/id", "unknown", "There is no such team in this project.")
        if name is None:
            assert problem is not None
            return None, (problem,)
        return Assignee(kind, assignee_id, name), ()

    def _author(
        self, record: MessageRecord, contact: Contact
    ) -> tuple[tuple[str | None, str | None], tuple[Problem, ...]]:
        """Return the id and name of the author, as of a message that is posted (ADR 5)."""
        if record.author_type == "contact":
            return (contact.id, contact.name), ()
        if record.author_type == "agent" and record.author_id is not None:
            name = self._member(record.author_id)
            if name is None:
                message = "There is no such user in this project; without an id any name is taken."
                return _NO_AUTHOR, (Problem("/author/id", "unknown", message),)
            if not self._as_users:
                return _NO_AUTHOR, (Problem("/author/id", "not_allowed", _NOT_AS_USER),)
            return (record.author_id, record.author_name or name), ()
        return (record.author_id, record.author_name), ()

    def _attachments(self, ids: Sequence[str]) -> tuple[Sequence[Attachment], Sequence[Problem]]:
        uploads = [self._tx.upload(self._project.rowid, upload_id) for upload_id in ids]
        missing = [
            unknown_upload(f"/attachments/{number}", upload_id)
            for number, (upload_id, upload) in enumerate(zip(ids, uploads, strict=True))
            if upload is None
        ]
        return [Attachment(up.id, up.name, up.type, up.size) for up in uploads if up is not None], missing

    def _imported(self, kind: RecordKind, record: Record) -> None:
        self.outcome.imported[kind] += 1
        if record.doubts:
            self.outcome.doubted.append(RefusedLine(record.line, record.external_id, record.doubts))

    def _conflict(self, kind: RecordKind, record: Record) -> None:
        message = f"A {kind} of this id was brought in before, with other content; existing values stay."
        self._refuse(record, Problem("/externalId", "conflict", message))

    def _refuse(self, record: Record, *problems: Problem) -> None:
        self.outcome.refused.append(RefusedLine(record.line, record.external_id, problems))


def _begun(
    conversation_id: str, record: ConversationRecord, project: int, at: int, assignee: Assignee | None
) -> Conversation:
    """Return the conversation without its messages. Its retention begins now (ADR 30).

    Without a time of closing or rating, the time of the last change stands for it.
    """
    updated_at = record.created_at if record.updated_at is None else record.updated_at
    closed_at = updated_at if record.closed_at is None else record.closed_at
    rated_at = updated_at if record.rated_at is None else record.rated_at
    return Conversation(
        id=conversation_id,
        project=project,
        created_at=record.created_at,
        updated_at=max(record.created_at, record.updated_at or record.closed_at or 0),
        title=record.title,
        status=record.status,
        closed_by=record.closed_by,
        closed_at=closed_at if record.status == "CLOSED" else None,
        unread=record.unread,
        archived=record.archived,
        archived_at=at if record.archived else None,
        imported_at=at,
        seen_until=at if record.status == "CLOSED" else 0,
        assignee=assignee,
        attributes=record.attributes,
        rating=record.rating,
        rated_at=None if record.rating is None else rated_at,
        rating_comment=record.rating_comment,
        human=assignee is not None,
        team_id=assignee.id if assignee is not None and assignee.type == "team" else None,
        channel=record.channel_id,
        client_id=record.client_id,
    )
