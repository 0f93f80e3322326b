"""Hands a message to the SMTP server of the settings, over one connection, in a thread."""

from __future__ import annotations

import smtplib
import socket
import ssl
from collections.abc import Callable
from email.message import EmailMessage
from typing import Final

import trio
from msgspec import Struct

from deskwire.engine.mail.content import Sender
from deskwire.engine.mail.security import Security

PORTS: Final[dict[Security, int]] = {"starttls": 587, "tls": 465, "none": 25}
"""The usual port of each security (RFC 8314, RFC 6409)."""

OPERATION_TIMEOUT_S: Final = 20.0
"""Maximum time of one operation on the connection."""
ATTEMPT_TIMEOUT_S: Final = 90.0
"""Maximum time of an attempt; a server that sends single bytes keeps each operation below its own timeout."""
_REASON_MAX: Final = 300


class MailFailed(Exception):
    """A failed attempt; the text says why, without credentials and links.

    Args:
        permanent: whether the server refused this mail for good (a reply of 5xx to its recipient or its content).
    """

    def __init__(self, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.permanent: Final = permanent


class SmtpServer(Struct, frozen=True):
    """The SMTP server of the settings.

    Args:
        user, password: both None if the server takes mails without a sign-in. The password is read at each attempt, so that
            a replaced file needs no restart. Raises OSError or ValueError.
        trust: verifies the server's certificate, also after STARTTLS.
    """

    host: str
    port: int
    security: Security
    sender: Sender
    trust: ssl.SSLContext
    user: str | None = None
    password: Callable[[], str] | None = None

    async def send(self, message: EmailMessage, recipient: str) -> None:
        """Send a message. Raises MailFailed.

        A connection is closed at once if the call is cancelled or takes too long.
        """
        connection = _Connection()
        try:
            with trio.fail_after(ATTEMPT_TIMEOUT_S):
                await trio.to_thread.run_sync(
                    self._send, connection, message, recipient, abandon_on_cancel=True
                )
        except trio.TooSlowError:
            raise MailFailed(f"the server did not take the mail within {ATTEMPT_TIMEOUT_S:g} s") from None
        finally:
            connection.abort()

    def _send(self, connection: _Connection, message: EmailMessage, recipient: str) -> None:
        try:
            password = None if self.password is None else self.password()
        except (OSError, ValueError) as error:
            raise MailFailed(f"the password's file can't be used: {error}") from error
        try:
            with self._connected(connection) as client:
                client.ehlo()
                if self.security == "starttls":
                    client.starttls(context=self.trust)
                    client.ehlo()
                if self.user is not None and password is not None:
                    client.login(self.user, password)
                client.send_message(message, self.sender.address, [recipient])
                connection.accepted = True
        except (OSError, smtplib.SMTPException, UnicodeError) as error:
            # An accepted mail must not be sent again because the server closed the connection before the reply to QUIT.
            if not connection.accepted:
                raise _failure(error) from error

    def _connected(self, connection: _Connection) -> smtplib.SMTP:
        if self.security == "tls":
            return _TlsClient(connection, self.host, self.port, self.sender.domain, self.trust)
        return _Client(connection, self.host, self.port, self.sender.domain)


class _Connection:
    """The socket of an attempt, which the event loop may shut down while the thread uses it."""

    def __init__(self) -> None:
        self.accepted = False
        self._socket: socket.socket | None = None
        self._aborted = False

    def opened(self, connected: socket.socket) -> None:
        """Note the connected socket."""
        self._socket = connected
        if self._aborted:
            self.abort()

    def abort(self) -> None:
        """End the connection, also under a blocking call of the thread."""
        self._aborted = True
        if self._socket is not None:
            try:
                # Not the method of an SSLSocket, which would continue without encryption.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:  # it is closed
                pass


class _Client(smtplib.SMTP):
    def __init__(self, connection: _Connection, host: str, port: int, name: str) -> None:
        self._connection = connection
        super().__init__(host, port, name, OPERATION_TIMEOUT_S)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        connected = socket.create_connection((host, port), timeout)
        self._connection.opened(connected)
        return connected


class _TlsClient(smtplib.SMTP_SSL):
    def __init__(
        self, connection: _Connection, host: str, port: int, name: str, trust: ssl.SSLContext
    ) -> None:
        self._connection = connection
        super().__init__(host, port, name, timeout=OPERATION_TIMEOUT_S, context=trust)

    def _get_socket(self, host: str, port: int, timeout: float) -> ssl.SSLSocket:
        connected = socket.create_connection((host, port), timeout)
        self._connection.opened(connected)
        secure = self.context.wrap_socket(connected, server_hostname=host)
        self._connection.opened(secure)
        return secure


def _failure(error: Exception) -> MailFailed:
    """Return the failure of an attempt with a reason for the operator."""
    match error:
        case smtplib.SMTPAuthenticationError():
            # Without the server's text, which may repeat the credentials.
            return MailFailed(f"the server refused the user or password ({error.smtp_code})")
        case smtplib.SMTPRecipientsRefused():
            ((code, reply),) = error.recipients.values()
            return _refused("recipient", code, reply)
        case smtplib.SMTPSenderRefused():
            # The settings are wrong, and mended ones let the mail through: so it is not permanent.
            return MailFailed(f"the server refused the sender: {_shown(error.smtp_code, error.smtp_error)}")
        case smtplib.SMTPDataError():
            return _refused("mail", error.smtp_code, error.smtp_error)
        case smtplib.SMTPResponseException():
            return MailFailed(
                f"the server refused the connection: {_shown(error.smtp_code, error.smtp_error)}"
            )
        case smtplib.SMTPServerDisconnected() if isinstance(error.__context__, TimeoutError):
            return _too_slow()
        case smtplib.SMTPServerDisconnected():
            return MailFailed("the server closed the connection")
        case smtplib.SMTPException():  # such as STARTTLS, AUTH or SMTPUTF8 that the server does not offer
            return MailFailed(f"the server lacks a feature: {_printable(str(error))}")
        case ssl.SSLCertVerificationError():
            return MailFailed(f"the server's certificate is not valid: {error.verify_message}")
        case ssl.SSLError():
            return MailFailed(f"TLS failed: {error.reason or 'no common version or an invalid record'}")
        case UnicodeError():
            return MailFailed("the user, the password or a reply of the server is not ASCII")
        case TimeoutError():
            return _too_slow()
        case _:
            reason = getattr(error, "strerror", None) or "unknown reason"
            return MailFailed(f"the server can't be reached: {reason}")


def _too_slow() -> MailFailed:
    return MailFailed(f"the server did not answer within {OPERATION_TIMEOUT_S:g} s")


def _refused(what: str, code: int, reply: bytes | str) -> MailFailed:
    return MailFailed(f"the server refused the {what}: {_shown(code, reply)}", permanent=500 <= code < 600)


def _shown(code: int, reply: bytes | str) -> str:
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    return f"{code} {_printable(text)}".strip()


def _printable(text: str) -> str:
    """Return a text of the server on one line, shortened, without what follows the fragment mark of a quoted link."""
    shown = " ".join("".join(each if each.isprintable() else " " for each in text.partition("#")[0]).split())
    return shown[:_REASON_MAX]
