"""The queue of mails: stored with the change that needs them, sent by one node, with retries.

The commit of an invitation also stores its mail, so a crash after the commit loses no mail. An attempt first claims its mail
in a commit of its own. A claim lapses, so a mail whose sender crashed is attempted again: it is sent at least once, with the
same `Message-ID` each time. A request for a new password is stored as it came. The queue looks the account up later, so that
neither the answer nor its time shows whether the account exists.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from email.message import EmailMessage
from typing import Final, Protocol

import structlog
import trio
from msgspec import Struct

from deskwire.engine.accounts.invitations import Invitation
from deskwire.engine.accounts.links import (
    MAILED_PASSWORD_LIFETIME_MS,
    hash_link_token,
    link_url,
    make_mailed_password_link,
    new_link_token,
)
from deskwire.engine.audit.trail import AttributedStore, AuditTransaction, ChangeOrigin
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.encryption import DecryptionFailed, Encryption
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import Store
from deskwire.engine.core.values import replace
from deskwire.engine.mail.content import (
    Sender,
    UnusableAddress,
    checked_address,
    invitation_mail,
    message_of,
    opened_content,
    password_mail,
)
from deskwire.engine.mail.ports import WAITING_MAX, Mail, MailReader, MailStatus, MailTransaction
from deskwire.engine.mail.smtp import ATTEMPT_TIMEOUT_S, MailFailed

log: Final = structlog.get_logger(__name__)

RETRY_DELAYS_S: Final = (15, 60, 300, 900, 1_800, 3_600)
"""Retry delays by number of failed attempts. The last one repeats until the mail expires."""
MAIL_LIFETIME_MS: Final = 24 * 3_600_000
"""Time after which a mail is not attempted again."""
CLAIM_MS: Final = int(ATTEMPT_TIMEOUT_S * 1000) + 30_000
"""Time after which another node attempts a claimed mail; longer than an attempt may take."""
_POLL_INTERVAL_S: Final = 1.0
_CONCURRENT_MAX: Final = 4

Send = Callable[[EmailMessage, str], Awaitable[None]]


class QueueTransaction(MailTransaction, AuditTransaction, Protocol):
    """Changes of queued mails, which may be recorded in the audit trail."""


class MailCounters(Struct):
    """Numbers of sent mails, failed attempts, and mails that were given up, since the start."""

    sent: int = 0
    failures: int = 0
    given_up: int = 0


class Mailer(Struct, frozen=True):
    """Queues mails, within the transaction of the change that needs them.

    Args:
        base_url: the URL by which browsers reach the desk.
    """

    sealing: Encryption
    base_url: str

    def invite(
        self,
        tx: MailTransaction,
        invitation: Invitation,
        organisation: str,
        inviter: str,
        token: str,
        at: int,
    ) -> None:
        """Queue the mail of an invitation."""
        url = link_url(self.base_url, token)
        content = invitation_mail(organisation, inviter, url, invitation.expires_at)
        expires_at = min(at + MAIL_LIFETIME_MS, invitation.expires_at)
        tx.insert_mail(
            Mail(
                new_id("eml", at),
                "invitation",
                invitation.email,
                at,
                expires_at,
                at,
                content.sealed(self.sealing),
                invitation.rowid,
            )
        )

    def request_password(self, tx: MailTransaction, email: str, at: int) -> None:
        """Queue a request for a new password, unless too many mails wait."""
        if tx.mail_health().waiting >= WAITING_MAX:
            log.warning("mail.request_dropped", reason="too many mails wait")
            return
        tx.insert_mail(
            Mail(new_id("eml", at), "passwordRequest", email, at, at + MAILED_PASSWORD_LIFETIME_MS, at)
        )


class MailQueue:
    """The task that sends queued mails.

    Args:
        send: sends a message to an address. Raises MailFailed.
        sender: the sender of all mails.
    """

    def __init__(
        self,
        store: Store[MailReader, QueueTransaction],
        clock: Clock,
        mailer: Mailer,
        sender: Sender,
        send: Send,
        counters: MailCounters,
    ) -> None:
        self._store = store
        self._clock = clock
        self._mailer = mailer
        self._sender = sender
        self._send = send
        self._counters = counters
        self._under_way: set[int] = set()

    async def run(self) -> None:
        """Send mails, until cancelled."""
        self._under_way.clear()
        async with trio.open_nursery() as nursery:
            while True:
                due = await self._due()
                for rowid in due:
                    if rowid not in self._under_way and len(self._under_way) < _CONCURRENT_MAX:
                        self._under_way.add(rowid)
                        nursery.start_soon(self._attempt, rowid)
                await trio.sleep(_POLL_INTERVAL_S)

    async def _due(self) -> Sequence[int]:
        now = self._clock()
        try:
            return await self._store.read(lambda reader: reader.due_mails(now, 2 * _CONCURRENT_MAX))
        except Unavailable as error:
            log.warning("mail.queue_not_read", reason=error.reason)
            return ()

    async def _attempt(self, rowid: int) -> None:
        try:
            mail = await self._claimed(rowid)
            if mail is not None:
                await self._deliver(mail)
        except Unavailable as error:
            log.warning("mail.delayed", mail=rowid, reason=error.reason)
        finally:
            self._under_way.discard(rowid)

    async def _claimed(self, rowid: int) -> Mail | None:
        """Claim a due mail for an attempt. Return None if it is gone, claimed by another node, or needs no attempt."""
        now, token = self._clock(), new_link_token()

        def claim(tx: MailTransaction) -> Mail | None:
            mail = tx.mail_with(rowid)
            if mail is None or mail.status != "waiting" or mail.due_at > now:
                return None
            if now >= mail.expires_at:
                ended = _ended(mail, "failed", mail.error or "it expired before it was sent", now)
                tx.save_mail(ended)
                return None
            if mail.purpose == "passwordRequest":
                mail = self._looked_up(tx, mail, token, now)
                if mail is None:
                    tx.delete_mail(rowid)
                    return None
            mail = replace(mail, attempts=mail.attempts + 1, due_at=now + CLAIM_MS)
            tx.save_mail(mail)
            return mail

        origin = ChangeOrigin(Actor("system"), now)
        return await AttributedStore(origin, self._store).write(claim)

    def _looked_up(self, tx: MailTransaction, request: Mail, token: str, now: int) -> Mail | None:
        """Return the mail for a request with its new link. None for an address without an account that has a password.

        An account without one signs in with an identity provider, which a password would bypass.
        """
        user = tx.user_by_email(request.recipient)
        if user is None or user.password_hash is None:
            return None
        make_mailed_password_link(tx, user, hash_link_token(token), now)
        expires_at = now + MAILED_PASSWORD_LIFETIME_MS
        content = password_mail(link_url(self._mailer.base_url, token), expires_at)
        sealed = content.sealed(self._mailer.sealing)
        return replace(
            request, purpose="password", recipient=user.email, sealed=sealed, expires_at=expires_at
        )

    async def _deliver(self, mail: Mail) -> None:
        """Send a claimed mail and store the outcome."""
        try:
            assert mail.sealed is not None, "a waiting mail has content"
            content = opened_content(self._mailer.sealing, mail.sealed)
            message = message_of(mail, content, self._sender, self._clock())
            await self._send(message, checked_address(mail.recipient))
        except MailFailed as failure:
            await self._failed(mail, str(failure), permanent=failure.permanent)
        except UnusableAddress as reason:
            await self._failed(mail, str(reason), permanent=True)
        except DecryptionFailed:
            reason_ = "the mail was stored under another secret of the installation; renew the invitation"
            await self._failed(mail, reason_, permanent=True)
        else:
            self._counters.sent += 1
            log.info("mail.sent", mail=mail.id, purpose=mail.purpose, attempts=mail.attempts)
            await self._save(_ended(mail, "sent", None, self._clock()))

    async def _failed(self, mail: Mail, reason: str, *, permanent: bool) -> None:
        now = self._clock()
        delay_s = RETRY_DELAYS_S[min(mail.attempts, len(RETRY_DELAYS_S)) - 1]
        due_at = now + delay_s * 1000
        self._counters.failures += 1
        if permanent or due_at >= mail.expires_at:
            self._counters.given_up += 1
            log.error(
                "mail.given_up", mail=mail.id, purpose=mail.purpose, attempts=mail.attempts, reason=reason
            )
            await self._save(_ended(mail, "failed", reason, now))
            return
        log.warning("mail.failed", mail=mail.id, purpose=mail.purpose, attempts=mail.attempts, reason=reason)
        await self._save(replace(mail, due_at=due_at, error=reason, last_at=now))

    async def _save(self, mail: Mail) -> None:
        """Store the outcome of an attempt, unless the mail was deleted in the meantime, as by a revoked invitation."""
        await self._store.write(lambda tx: tx.save_mail(mail))


def _ended(mail: Mail, status: MailStatus, reason: str | None, at: int) -> Mail:
    return replace(mail, status=status, error=reason, last_at=at, sealed=None)
