"""The texts of mails, whose headers no name or address can break."""

from __future__ import annotations

import email
from email.policy import default

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.mail.content import (
    MailContent,
    Sender,
    UnusableAddress,
    checked_address,
    invitation_mail,
    message_of,
    one_line,
    password_mail,
)
from deskwire.engine.mail.ports import Mail

FROM = Sender("Deskwire, Support", "support@example.com")


def written(content: MailContent, to: str = "ada@example.org") -> bytes:
    """Return the message as it is sent."""
    return message_of(Mail("eml_1", "invitation", to, 0, 0, 0), content, FROM, 0).as_bytes()


@given(name=st.text(max_size=200), inviter=st.text(max_size=200))
def test_names_add_no_header_and_no_recipient(name: str, inviter: str) -> None:
    content = invitation_mail(name, inviter, "https://x.example/desk/link#t", 0)
    message = email.message_from_bytes(written(content), policy=default)
    assert set(message.keys()) == {
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Content-Type", "Content-Transfer-Encoding",
        "MIME-Version",
    }  # fmt: skip
    assert message["To"] == "ada@example.org"
    assert message["From"] == '"Deskwire, Support" <support@example.com>'
    assert not message.is_multipart()
    assert message.get_content_type() == "text/plain"


def test_name_with_line_ends_stays_on_one_line() -> None:
    content = invitation_mail("Acme\r\nBcc: victim@example.com\r\n\r\nText", "Eve", "https://x.example/#t", 0)
    assert content.subject == "Invitation to Acme Bcc: victim@example.com Text"
    assert b"\r\nBcc:" not in written(content)
    assert len(one_line("x" * 500)) == 100


@pytest.mark.parametrize(
    "address",
    [
        "a@b.example,c@d.example",
        "a,b@c.example",
        "<a@b.example>",
        "a<b>@c.example",
        '"a b"@c.example',
        "a@b.example\r\nRCPT TO:<c@d.example>",
        "a(x)@c.example",
        "a;b@c.example",
        ".a@c.example",
        "a..b@c.example",
        "a@-c.example",
        "a@",
        "@c.example",
        "a@c .example",
        f"{'a' * 300}@c.example",
    ],
)
def test_unusual_address_gets_no_mail(address: str) -> None:
    with pytest.raises(UnusableAddress):
        written(password_mail("https://x.example/#t", 0), address)


def test_domain_is_written_in_ascii() -> None:
    assert checked_address("ada@bücher.example") == "ada@xn--bcher-kva.example"
    assert checked_address("a.b+c@x.example") == "a.b+c@x.example"
