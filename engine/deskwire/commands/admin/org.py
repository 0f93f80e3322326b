"""`deskwire org`: organisations."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import click

from deskwire.commands.admin.invocation import invoke, query
from deskwire.commands.shell.help import HelpGroup
from deskwire.commands.shell.options import common_options, yes_option
from deskwire.commands.shell.output import Columns, show, show_created
from deskwire.commands.shell.questions import confirm

COLUMNS: Final[Columns] = {
    "id": itemgetter("id"),
    "name": itemgetter("name"),
    "created": itemgetter("createdAt"),
}


@click.group("org", cls=HelpGroup)
def org() -> None:
    """Create, list, rename and delete organisations."""


@org.command("create", examples=["deskwire org create Acme", "ORG=$(deskwire org create Acme)"])
@click.argument("name")
@common_options
def create(name: str, data: Path | None, as_json: bool) -> None:
    """Create an organisation and print its id. The first one also creates the data directory."""
    result = invoke(data, "org.create", make=True, name=name)
    show_created(result, as_json, "id", f"The organisation {name} was created.")


@org.command("list", examples=["deskwire org list", "deskwire org list --json"])
@common_options
def list_all(data: Path | None, as_json: bool) -> None:
    """List all organisations, oldest first."""
    show(query(data, "org.list"), as_json, COLUMNS)


@org.command("rename", examples=['deskwire org rename Acme "Acme Ltd."'])
@click.argument("organisation")
@click.argument("name")
@common_options
def rename(organisation: str, name: str, data: Path | None, as_json: bool) -> None:
    """Rename an ORGANISATION (id or name) to NAME."""
    show(invoke(data, "org.rename", organisation=organisation, name=name), as_json, COLUMNS)


@org.command(
    "delete", examples=["deskwire org delete Acme", "deskwire org delete Acme --yes --with-accounts"]
)
@click.argument("organisation")
@click.option(
    "--with-accounts",
    is_flag=True,
    help="Also delete the accounts that are members of no other organisation.",
)
@yes_option("Delete it")
@common_options
def delete(organisation: str, with_accounts: bool, yes: bool, data: Path | None, as_json: bool) -> None:
    """Delete an ORGANISATION (id or name) for good, with its empty projects and all memberships.

    A project that holds conversations or other data is never deleted: the command then names these projects and changes
    nothing. Keys, machine credentials and members' rights end at once, and so do their streams, even while a server is running.
    Without --with-accounts, accounts stay and can be added to other organisations. The audit trail keeps the organisation's name.
    """
    found = query(data, "org.show", organisation=organisation)
    confirm(_words(found, with_accounts), yes)
    result = invoke(data, "org.delete", organisation=found["id"], withAccounts=with_accounts)
    words = f"The organisation {found['name']} has been deleted"
    gone = len(result["deletedUserIds"])
    show_created(result, as_json, "id", f"{words}, with {_count(gone, 'account')}." if gone else f"{words}.")


def _words(found: dict[str, Any], with_accounts: bool) -> str:
    """Return the consequences, for the confirmation."""
    words = (
        f"The organisation {found['name']} will be deleted for good, with {_count(len(found['projects']), 'empty project')} and "
        f"{_count(found['members'], 'membership')}."
    )
    alone = len(found["onlyHere"])
    if not alone:
        return words
    gone = (
        "will also be deleted"
        if with_accounts
        else "will be members of nothing (--with-accounts deletes them)"
    )
    return f"{words} {_count(alone, 'account')} {gone}."


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
