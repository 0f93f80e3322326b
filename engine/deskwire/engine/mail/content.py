"""The texts of mails, and their form on the wire: plain text, with headers that no name or address can break."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final

import orjson
from msgspec import Struct

from deskwire.engine.core.clock import iso
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.mail.ports import Mail

_NAME_MAX: Final = 100
_ADDRESS_MAX: Final = 254  # RFC 5321, errata 1690
# The dot-atom of RFC 5322, with letters of RFC 6531. Quoted local parts, comments and lists of addresses do not match.
_LOCAL: Final = re.compile(r"[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*")
_DOMAIN: Final = re.compile(r"(?!-)[\w-]{1,63}(?<!-)(\.(?!-)[\w-]{1,63}(?<!-))*|\[[0-9A-Fa-f:.]+\]")


class MailContent(Struct, frozen=True):
    """The content of a mail before it is sent."""

    subject: str
    text: str

    def sealed(self, sealing: Encryption) -> bytes:
        """Return the content encrypted for the store, because it has the token of a link."""
        return sealing.seal_bytes(orjson.dumps([self.subject, self.text]))


class UnusableAddress(Exception):
    """An address to which no mail can be sent; the text says why."""


class Sender(Struct, frozen=True):
    """The sender of all mails: a display name, "" for none, and an address."""

    name: str
    address: str

    @property
    def domain(self) -> str:
        """The domain of the address."""
        return self.address.rpartition("@")[2]


def opened_content(sealing: Encryption, sealed: bytes) -> MailContent:
    """Return the content that was sealed. Raises DecryptionFailed."""
    subject, text = orjson.loads(sealing.open_bytes(sealed))
    return MailContent(subject, text)


def invitation_mail(organisation: str, inviter: str, url: str, expires_at: int) -> MailContent:
    """Return the mail that invites a person to an organisation."""
    organisation, inviter = one_line(organisation), one_line(inviter)
    return MailContent(
        f"Invitation to {organisation}",
        f"{inviter} invites you to work in {organisation} with Deskwire.\n\n"
        f"Open this link to accept the invitation and sign in. It works once, until {iso(expires_at)}:\n\n{url}\n\n"
        "If you did not expect this invitation, ignore this mail. Do not forward it: the link is for you alone.\n",
    )


def password_mail(url: str, expires_at: int) -> MailContent:
    """Return the mail with a link for a new password."""
    return MailContent(
        "Choose a new password for Deskwire",
        "Someone, probably you, asked for a new password for your Deskwire account.\n\n"
        f"Open this link to choose one. It works once, until {iso(expires_at)}:\n\n{url}\n\n"
        "If it was not you, ignore this mail: your password has not changed. Do not forward it: the link is for you alone.\n",
    )


def test_mail(url: str) -> MailContent:
    """Return the mail by which an operator checks the settings."""
    return MailContent(
        "Test mail of Deskwire", f"The mail settings of the Deskwire installation at {url} work.\n"
    )


def one_line(text: str) -> str:
    """Return a name as printable text on one line, shortened if it is long."""
    shown = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return shown if len(shown) <= _NAME_MAX else f"{shown[: _NAME_MAX - 1]}…"


def checked_address(text: str) -> str:
    """Return the text if it is one plain address, with its domain in ASCII. Raises UnusableAddress."""
    local, _, domain = text.rpartition("@")
    if len(text) > _ADDRESS_MAX or _LOCAL.fullmatch(local) is None or _DOMAIN.fullmatch(domain) is None:
        raise UnusableAddress("the address has a form to which no mail is sent")
    try:
        return f"{local}@{domain if domain.startswith('[') else domain.encode('idna').decode()}"
    except UnicodeError:
        raise UnusableAddress("the domain of the address can't be written in ASCII (IDNA)") from None


def message_of(mail: Mail, content: MailContent, sender: Sender, now: int) -> EmailMessage:
    """Return the message to send.

    The `Message-ID` is the same for all attempts, so that servers and readers recognise a second copy.

    Raises UnusableAddress.
    """
    local, _, domain = checked_address(mail.recipient).rpartition("@")
    message = EmailMessage(policy=SMTP)
    message["From"] = Address(sender.name, addr_spec=sender.address)
    message["To"] = Address(username=local, domain=domain)
    message["Subject"] = one_line(content.subject)
    message["Date"] = format_datetime(datetime.fromtimestamp(now / 1000, UTC))
    message["Message-ID"] = f"<{mail.id}@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no vacation replies
    message.set_content(content.text)
    return message
