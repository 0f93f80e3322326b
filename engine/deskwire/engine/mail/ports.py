"""A queued mail, and the store port of the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.accounts.invitations import InvitationTransaction
from deskwire.engine.core.clock import iso, iso_or_none

MailPurpose = Literal["invitation", "password", "passwordRequest"]
MailStatus = Literal["waiting", "sent", "failed"]

WAITING_MAX: Final = 10_000
"""Maximum number of waiting mails. A further request for a new password is dropped."""
ENDED_KEPT_MS: Final = 7 * 24 * 3_600_000
"""Time for which a sent or failed mail stays listed, without its content."""


class Mail(Struct, frozen=True):
    """A queued mail. Times are in milliseconds.

    Args:
        purpose: `passwordRequest` for a request that has not been looked up yet, and may be for an unknown address.
        sealed: the encrypted content (`content.MailContent`). None before a request was looked up, and after the mail's end.
        invitation: storage key of the invitation that the mail is about.
        expires_at: time after which the mail is not attempted again.
        due_at: time of the next attempt. During an attempt, the time at which another node may attempt it.
        attempts, error, last_at: number of attempts, and the reason and time of the last failure or success.
        rowid: storage key, 0 before it is stored.
    """

    id: str
    purpose: MailPurpose
    recipient: str
    created_at: int
    expires_at: int
    due_at: int
    sealed: bytes | None = None
    invitation: int | None = None
    status: MailStatus = "waiting"
    attempts: int = 0
    error: str | None = None
    last_at: int | None = None
    rowid: int = 0


def mail_view(mail: Mail) -> dict[str, Any]:
    """Return the mail as the operator sees it, without its text."""
    return {
        "id": mail.id,
        "recipient": mail.recipient,
        "purpose": mail.purpose,
        "status": mail.status,
        "attempts": mail.attempts,
        "error": mail.error,
        "createdAt": iso(mail.created_at),
        "lastAttemptAt": iso_or_none(mail.last_at),
        "nextAttemptAt": iso(mail.due_at) if mail.status == "waiting" else None,
    }


class MailHealth(Struct, frozen=True):
    """The state of the queue: numbers of waiting and failed mails, and the creation time (ms) of the oldest waiting one."""

    waiting: int
    failed: int
    oldest_at: int | None


class MailReader(Protocol):
    """Queries on queued mails."""

    def mail_with(self, mail: int) -> Mail | None:
        """Return the mail with this storage key."""

    def due_mails(self, now: int, limit: int) -> Sequence[int]:
        """Return the storage keys of waiting mails that are due at `now` (ms), the longest due ones first."""

    def mails(self, limit: int) -> Sequence[Mail]:
        """Return the newest mails, waiting ones and ended ones."""

    def mail_health(self) -> MailHealth:
        """Return the state of the queue."""


class MailTransaction(MailReader, InvitationTransaction, Protocol):
    """Changes of queued mails."""

    def insert_mail(self, mail: Mail) -> None:
        """Store a new mail."""

    def save_mail(self, mail: Mail) -> None:
        """Store a mail's purpose, recipient, content and state."""

    def delete_mail(self, mail: int) -> None:
        """Delete the mail with this storage key."""

    def prune_mails(self, now: int, limit: int) -> int:
        """Delete up to `limit` mails that ended `ENDED_KEPT_MS` before `now` (ms), and return the number deleted."""
