"""The SMTP client, at a real server with and without TLS, and at servers that misbehave."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from deskwire.engine.mail import smtp
from deskwire.engine.mail.content import MailContent, Sender, message_of
from deskwire.engine.mail.ports import Mail
from deskwire.engine.mail.security import Security
from deskwire.engine.mail.smtp import MailFailed, SmtpServer
from tests.support.sockets.smtp_server import mail_server, raw_server

# aiosmtpd does not notice that a connection is encrypted from the start.
pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
FROM = Sender("Deskwire", "support@example.com")
TO = "ada@example.org"
PASSWORD = "swordfish"
MESSAGE = message_of(Mail("eml_1", "invitation", TO, 0, 0, 0), MailContent("Hello", "Text\n"), FROM, 0)


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    """An authority that the client trusts."""
    return trustme.CA()


def server(ca: trustme.CA, port: int, security: Security, **more: Any) -> SmtpServer:
    """The settings of a server at this machine."""
    trust = ssl.create_default_context()
    ca.configure_trust(trust)
    return SmtpServer("localhost", port, security, FROM, trust, **more)


async def failure(server: SmtpServer, to: str = TO) -> MailFailed:
    """Send a mail, which must fail."""
    with pytest.raises(MailFailed) as caught:
        await server.send(MESSAGE, to)
    return caught.value


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_mail_is_sent_encrypted_after_a_sign_in(ca: trustme.CA, security: Security) -> None:
    leaf = ca.issue_cert("localhost")
    with mail_server(leaf, implicit=security == "tls", password=PASSWORD) as mailbox:
        client = server(ca, mailbox.port, security, user="u", password=lambda: PASSWORD)
        await client.send(MESSAGE, TO)
        (taken,) = mailbox.taken
        assert (taken.sender, taken.recipients) == (FROM.address, [TO])
        assert mailbox.sign_ins == 1
        assert security == "tls" or taken.encrypted
        assert taken.message["Message-ID"] == "<eml_1@example.com>"


@pytest.mark.parametrize("security", ["starttls", "tls"])
@pytest.mark.parametrize(("issuer", "name"), [("other", "localhost"), ("own", "mail.example.com")])
async def test_certificate_that_is_not_valid_gets_no_password(
    ca: trustme.CA, security: Security, issuer: str, name: str
) -> None:
    leaf = (ca if issuer == "own" else trustme.CA()).issue_cert(name)
    with mail_server(leaf, implicit=security == "tls", password=PASSWORD) as mailbox:
        client = server(ca, mailbox.port, security, user="u", password=lambda: PASSWORD)
        failed = await failure(client)
        assert "the server's certificate is not valid" in str(failed)
        assert not failed.permanent
        assert mailbox.sign_ins == 0


async def test_server_without_starttls_gets_nothing(ca: trustme.CA) -> None:
    with mail_server() as mailbox:
        failed = await failure(server(ca, mailbox.port, "starttls"))
        assert "STARTTLS" in str(failed)
        assert mailbox.taken == []


async def test_wrong_password_is_named_without_the_servers_words(ca: trustme.CA) -> None:
    with mail_server(ca.issue_cert("localhost"), password="other") as mailbox:
        client = server(ca, mailbox.port, "starttls", user="u", password=lambda: PASSWORD)
        failed = await failure(client)
        assert str(failed) == "the server refused the user or password (535)"
        assert not failed.permanent


@pytest.mark.parametrize(
    ("place", "reply", "permanent"),
    [
        (TO, "550 5.1.1 no such user", True),
        (TO, "451 4.7.1 greylisted, try again", False),
        ("DATA", "554 5.7.1 spam: http://x.example/desk/link#s3cr3t", True),
        ("DATA", "452 4.3.1 full", False),
    ],
)
async def test_refusals_are_permanent_if_the_server_says_so(
    ca: trustme.CA, place: str, reply: str, permanent: bool
) -> None:
    with mail_server() as mailbox:
        mailbox.replies[place] = reply
        failed = await failure(server(ca, mailbox.port, "none"))
        assert failed.permanent == permanent
        assert reply[:9] in str(failed)
        assert "s3cr3t" not in str(failed)


async def test_unreachable_server_and_unreadable_password_are_named(ca: trustme.CA, tmp_path: Path) -> None:
    assert "can't be reached: Connection refused" in str(await failure(server(ca, 1, "none")))
    file = tmp_path / "absent"
    client = server(ca, 1, "starttls", user="u", password=file.read_text)
    assert "the password's file can't be used" in str(await failure(client))


async def cut(after: int, stream: trio.SocketStream) -> None:
    """Answer as a server would, and close the connection after this number of replies."""
    replies = (
        b"220 x\r\n",
        b"250 x\r\n",
        b"250 x\r\n",
        b"250 x\r\n",
        b"354 go on\r\n",
        b"250 taken\r\n",
        b"221\r\n",
    )
    for reply in replies[:after]:
        await stream.send_all(reply)
        if reply.startswith(b"354"):
            seen = b""
            while not seen.endswith(b"\r\n.\r\n"):
                seen += await stream.receive_some()
        else:
            await stream.receive_some()


@pytest.mark.parametrize("after", range(5))
async def test_connection_cut_in_the_middle_is_a_failure_to_try_again(ca: trustme.CA, after: int) -> None:
    async with raw_server(partial(cut, after)) as port:
        failed = await failure(server(ca, port, "none"))
        assert not failed.permanent
        assert str(failed) in (
            "the server closed the connection",
            "the server can't be reached: Connection reset by peer",
        )


async def test_connection_cut_after_the_mail_was_taken_is_a_success(ca: trustme.CA) -> None:
    async with raw_server(partial(cut, 6)) as port:
        await server(ca, port, "none").send(MESSAGE, TO)


async def drip(stream: trio.SocketStream) -> None:
    """Send a greeting that never ends, byte by byte."""
    with trio.CancelScope():
        while True:
            await stream.send_all(b"2")
            await trio.sleep(0.02)


async def silent(stream: trio.SocketStream) -> None:
    """Say nothing."""
    await stream.receive_some()


@pytest.mark.parametrize(
    ("behaviour", "limit"), [(drip, "ATTEMPT_TIMEOUT_S"), (silent, "OPERATION_TIMEOUT_S")]
)
async def test_slow_server_ends_no_later_than_its_limits(
    ca: trustme.CA, behaviour: Callable[[trio.SocketStream], Any], limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp, limit, 0.3)
    async with raw_server(behaviour) as port:
        with trio.fail_after(10):
            failed = await failure(server(ca, port, "none"))
    assert "within 0.3 s" in str(failed)
    assert not failed.permanent


async def test_cancelled_attempt_ends_its_thread(ca: trustme.CA) -> None:
    ended = trio.Event()

    async def wait_for_the_end(stream: trio.SocketStream) -> None:
        while await stream.receive_some():
            pass
        ended.set()

    async with raw_server(wait_for_the_end) as port:
        with trio.move_on_after(0.2):
            await server(ca, port, "none").send(MESSAGE, TO)
        with trio.fail_after(10):
            await ended.wait()


async def test_mail_to_a_non_ascii_address_is_sent_with_smtputf8(ca: trustme.CA) -> None:
    with mail_server() as mailbox:
        mail = Mail("eml_2", "invitation", "jürgen@example.org", 0, 0, 0)
        message = message_of(mail, MailContent("Hello", "Text\n"), FROM, 0)
        await server(ca, mailbox.port, "none").send(message, mail.recipient)
        assert mailbox.taken[0].recipients == [mail.recipient]
