"""`deskwire mail`: the queue of mails, and a test of the settings."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Final

import click

from deskwire.commands.admin.invocation import invoke, query
from deskwire.commands.shell.help import HelpGroup
from deskwire.commands.shell.options import common_options
from deskwire.commands.shell.output import Columns, show, show_created

COLUMNS: Final[Columns] = {
    "id": itemgetter("id"),
    "to": itemgetter("recipient"),
    "about": itemgetter("purpose"),
    "state": itemgetter("status"),
    "attempts": itemgetter("attempts"),
    "next attempt": lambda item: item["nextAttemptAt"] or "",
    "reason": lambda item: item["error"] or "",
    "created": itemgetter("createdAt"),
}


@click.group("mail", cls=HelpGroup)
def mail() -> None:
    """List mails that wait, were sent or have failed, and test the settings."""


@mail.command("list", examples=["deskwire mail list"])
@common_options
def list_all(data: Path | None, as_json: bool) -> None:
    """List the newest 1,000 mails of the last 7 days, with the reasons of failures. Their texts are not shown."""
    show(query(data, "mail.list"), as_json, COLUMNS)


@mail.command("test", examples=["deskwire mail test you@example.com"])
@click.argument("address")
@common_options
def test(address: str, data: Path | None, as_json: bool) -> None:
    """Send a mail to an ADDRESS with the settings of the server, without the queue. A failure is shown with its reason."""
    result = invoke(data, "mail.test", address=address)
    show_created(result, as_json, "sentTo", "The server has taken the mail to:")
