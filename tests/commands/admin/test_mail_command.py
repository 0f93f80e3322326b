"""`deskwire mail`: the queue with the reasons of failures, and a test of the settings."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.api.mail.test_queue import listed as invitation_with
from tests.api.mail.test_queue import mailing
from tests.commands.admin.conftest import Deskwire, good, listed
from tests.support.api.links import INVITED, invited
from tests.support.sockets.server_process import free_port
from tests.support.sockets.smtp_server import Mailbox, mail_server


def use(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    """Set the mail settings of the commands."""
    settings = {"HOST": "127.0.0.1", "PORT": str(port), "FROM": "desk@example.com", "SECURITY": "none"}
    for name, value in settings.items():
        monkeypatch.setenv(f"DESKWIRE_SMTP_{name}", value)


@pytest.fixture
def shop(deskwire: Deskwire) -> Deskwire:
    """Return commands on a directory with an organisation."""
    good(deskwire("org", "create", "Acme"))
    return deskwire


def test_list_is_empty_without_mails(shop: Deskwire) -> None:
    assert good(shop("mail", "list")) == ""
    assert listed(shop("mail", "list", "--json")) == []


def test_test_without_settings_names_them(shop: Deskwire) -> None:
    refused = shop("mail", "test", "you@example.com")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "DESKWIRE_SMTP_HOST and DESKWIRE_SMTP_FROM" in refused.stderr


def test_test_sends_one_mail_and_queues_none(shop: Deskwire, monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server() as mailbox:
        use(monkeypatch, mailbox.port)
        sent = shop("mail", "test", "you@example.com")
        assert good(sent) == "you@example.com"
        assert "has taken the mail" in sent.stderr
    (mail,) = mailbox.taken
    assert (mail.recipients, mail.message["From"]) == (["you@example.com"], "desk@example.com")
    assert good(shop("mail", "list")) == ""


@pytest.mark.parametrize("address", ["no address", "a@b@c", "you@example.com\nBcc: all@example.com"])
def test_test_refuses_an_unusable_address(
    shop: Deskwire, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    with mail_server() as mailbox:
        use(monkeypatch, mailbox.port)
        refused = shop("mail", "test", address)
    assert refused.exit_code == 1
    assert "not an e-mail address" in refused.stderr
    assert mailbox.taken == []


def test_test_shows_the_reason_of_a_failure(shop: Deskwire, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, free_port())
    unreachable = shop("mail", "test", "you@example.com")
    assert unreachable.exit_code == 1
    assert "The mail was not sent" in unreachable.stderr
    with mail_server() as mailbox:
        mailbox.replies["you@example.com"] = "550 No such user"
        use(monkeypatch, mailbox.port)
        refused = shop("mail", "test", "you@example.com")
    assert refused.exit_code == 1
    assert "550" in refused.stderr


async def command(directory: Path, *arguments: str) -> str:
    """Run a command for the running service in a process of its own, and return its output."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DESKWIRE_")}
    done = await trio.run_process(
        [sys.executable, "-m", "deskwire", *arguments, "--data", str(directory)],
        env=clean,
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return str(done.stdout.decode())


async def test_list_of_a_running_service_has_reasons_and_no_content(tmp_path: Path) -> None:
    with mail_server() as mailbox:
        mailbox.replies[INVITED] = "550 No such user"
        async with mailing(tmp_path, mailbox.port) as service:
            token = (await invited(service))["url"].partition("#")[2]
            await invitation_with(service, "failed")
            table = await command(tmp_path, "mail", "list")
            (item,) = json.loads(await command(tmp_path, "mail", "list", "--json"))
            await sent_by_service(tmp_path, mailbox)
    assert_named(item)
    assert INVITED in table
    assert "550" in table
    assert token not in table + json.dumps(item)


async def sent_by_service(directory: Path, mailbox: Mailbox) -> None:
    """Check that `deskwire mail test` uses the settings of the running service."""
    assert (await command(directory, "mail", "test", "you@example.com")).strip() == "you@example.com"
    assert [each.recipients for each in mailbox.taken] == [["you@example.com"]]


def assert_named(item: dict[str, Any]) -> None:
    """Check the object of a mail that was given up."""
    shown = (item["recipient"], item["purpose"], item["status"], item["attempts"], item["nextAttemptAt"])
    assert shown == (INVITED, "invitation", "failed", 1, None)
    assert "550" in item["error"]
