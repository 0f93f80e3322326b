"""`deskwire org`: organisations."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Final

import click

from deskwire.commands.admin.terminal import Columns, common_options, order, show, show_created

COLUMNS: Final[Columns] = {
    "id": itemgetter("id"),
    "name": itemgetter("name"),
    "created": itemgetter("createdAt"),
}


@click.group("org")
def org() -> None:
    """Create, list and rename organisations."""


@org.command("create")
@click.argument("name")
@common_options
def create(name: str, data: Path | None, as_json: bool) -> None:
    """Create an organisation and print its id. The first one also creates the data directory."""
    result = order(data, "org.create", make=True, name=name)
    show_created(result, as_json, "id", f"The organisation {name} was created.")


@org.command("list")
@common_options
def list_all(data: Path | None, as_json: bool) -> None:
    """List all organisations, oldest first."""
    show(order(data, "org.list"), as_json, COLUMNS)


@org.command("rename")
@click.argument("organisation")
@click.argument("name")
@common_options
def rename(organisation: str, name: str, data: Path | None, as_json: bool) -> None:
    """Rename an ORGANISATION (id or name) to NAME."""
    show(order(data, "org.rename", organisation=organisation, name=name), as_json, COLUMNS)
