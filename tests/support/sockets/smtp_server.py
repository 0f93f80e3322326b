"""A real SMTP server in a thread (aiosmtpd), and servers that misbehave in ways that aiosmtpd does not."""

from __future__ import annotations

import email
import email.policy
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from email.message import Message
from functools import partial
from pathlib import Path
from typing import Any

import trio
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import free_port


@dataclass
class Taken:
    """A mail that the server has taken."""

    sender: str
    recipients: list[str]
    message: Message
    encrypted: bool
    raw: bytes


@dataclass
class Mailbox:
    """A server with the mails that it has taken.

    Args:
        replies: replies to RCPT by recipient, and to DATA under the name `DATA`; None or no entry: the mail is taken.
    """

    port: int = 0
    taken: list[Taken] = field(default_factory=list)
    replies: dict[str, str] = field(default_factory=dict)
    password: str | None = None
    sign_ins: int = 0

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Take or refuse a recipient."""
        if address in self.replies:
            return self.replies[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """Take or refuse a mail."""
        if "DATA" in self.replies:
            return self.replies["DATA"]
        raw = envelope.content
        assert isinstance(raw, bytes)
        self.taken.append(
            Taken(
                envelope.mail_from or "",
                list(envelope.rcpt_tos),
                email.message_from_bytes(raw, policy=email.policy.default),
                session.ssl is not None,
                raw,
            )
        )
        return "250 OK"

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, how: str, data: Any
    ) -> AuthResult:
        """Check the password."""
        self.sign_ins += 1
        good = isinstance(data, LoginPassword) and data.password.decode() == self.password
        return AuthResult(success=good, handled=good)

    async def first(self, count: int = 1) -> Taken:
        """Wait for this number of mails and return the last one."""
        with trio.fail_after(HANG_TIMEOUT_S):
            while len(self.taken) < count:  # noqa: ASYNC110 - the server runs in a thread of its own
                await trio.sleep(0.05)
        return self.taken[count - 1]


@contextmanager
def mail_server(
    tls: trustme.LeafCert | None = None,
    *,
    implicit: bool = False,
    password: str | None = None,
    port: int | None = None,
) -> Iterator[Mailbox]:
    """Run a server until the context ends.

    Args:
        tls: its certificate, for STARTTLS, or for TLS from the start if `implicit`.
        password: that of its users; None if it asks for none.
        port: the port to listen on, a free one by default.
    """
    mailbox, context = Mailbox(port or free_port(), password=password), None
    if tls is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.configure_cert(context)
    settings: dict[str, Any] = {}
    if context is not None and not implicit:
        settings |= {"tls_context": context, "require_starttls": True}
    if password is not None:
        settings |= {"authenticator": mailbox.authenticate, "auth_required": True}
        settings |= {"auth_require_tls": tls is not None and not implicit}
    controller = Controller(
        mailbox,
        hostname="127.0.0.1",
        port=mailbox.port,
        ssl_context=context if implicit else None,
        **settings,
    )
    controller.start()
    try:
        yield mailbox
    finally:
        controller.stop()


@asynccontextmanager
async def raw_server(answer: Callable[[trio.SocketStream], Any]) -> AsyncIterator[int]:
    """Yield the port of a server that answers each connection by `answer`."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, answer, 0, host="127.0.0.1"))
        yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


def authority(directory: Path) -> tuple[trustme.CA, Path]:
    """Return a certificate authority, and the file with its certificate."""
    ca, file = trustme.CA(), directory / "ca.pem"
    ca.cert_pem.write_to_path(str(file))
    return ca, file
