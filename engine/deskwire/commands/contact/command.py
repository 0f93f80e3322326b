"""`deskwire contact` and its commands. Their modules are imported when they run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from deskwire.commands.api_client.access import with_access
from deskwire.commands.api_client.call import call
from deskwire.commands.shell.help import HelpGroup
from deskwire.commands.shell.options import json_option, yes_option
from deskwire.commands.shell.output import show_created, shown_progress
from deskwire.commands.shell.questions import confirm

if TYPE_CHECKING:
    from deskwire.commands.api_client.access import ServiceAccess


@click.group("contact", cls=HelpGroup)
def contact() -> None:
    """Export or erase all that is stored about a contact."""


def _user_id(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument USER_ID and the options of the service to a command."""
    return click.argument("user_id", metavar="USER_ID")(with_access(command))


@contact.command(
    "export",
    examples=[
        "deskwire contact export user-4711 > user-4711.json",
        "deskwire contact export user-4711 -o user-4711.json",
    ],
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File to write, readable by its owner only; it appears when it is complete. Default: standard output.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@_user_id
def export(
    user_id: str,
    output: Path | None,
    force: bool,
    access: ServiceAccess,
) -> None:
    """Export all that is stored about the contact with this USER_ID, as one JSON document.

    The document has the contact, its conversations with their messages, survey answers and memory, and links to files. It has no
    internal notes, which a server key can't read.
    """
    from deskwire.commands.contact.privacy import export_contact

    if output is not None and output.exists() and not force:
        raise click.UsageError(f"{output} already exists; use --force to replace it.")
    with shown_progress(beside=output is None) as tell:
        call(access, lambda service: export_contact(service, _path(user_id), output, tell))
    if output is not None:
        click.echo(f"The export of {user_id} is in {output}.", err=True)


@contact.command(
    "erase", examples=["deskwire contact erase user-4711", "deskwire contact erase user-4711 --yes"]
)
@yes_option("Erase the contact")
@_user_id
@json_option("JSON")
def erase(
    user_id: str,
    yes: bool,
    access: ServiceAccess,
    as_json: bool,
) -> None:
    """Erase the contact with this USER_ID and all that belongs to it: conversations, answers, memory and uploads.

    Returns when all of it is erased. Once started, an erasure continues even if the command is interrupted.
    """
    from deskwire.commands.contact.privacy import erase_contact

    known = call(access, lambda service: service.fetch(_path(user_id)))
    confirm(
        f"The contact {user_id} ({known['name'] or 'without a name'}) will be erased for good, with all its conversations.",
        yes,
    )
    with shown_progress() as tell:
        gone = call(access, lambda service: erase_contact(service, _path(user_id), tell))
    show_created(gone, as_json, "id", f"The contact {user_id} has been erased.")


def _path(user_id: str) -> str:
    return f"/s2s/contacts/{quote(user_id, safe='')}"
