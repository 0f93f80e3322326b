"""`deskwire project`: projects and their settings."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import click

from deskwire.commands.admin.invocation import invoke, query
from deskwire.commands.shell.help import HelpGroup
from deskwire.commands.shell.options import common_options
from deskwire.commands.shell.output import Columns, show, show_created

COLUMNS: Final[Columns] = {
    "id": itemgetter("id"),
    "name": itemgetter("name"),
    "organisation": itemgetter("organisationId"),
    "stream key": itemgetter("streamKey"),
    "created": itemgetter("createdAt"),
}
DETAILS: Final[Columns] = {
    "id": itemgetter("id"),
    "name": itemgetter("name"),
    "stream key": itemgetter("streamKey"),
    "memory": lambda item: "on" if item["settings"]["memoryEnabled"] else "off",
    "archived days": lambda item: item["settings"]["archivedRetentionDays"] or "never deleted",
    "language": lambda item: item["settings"]["primaryLanguage"],
    "languages": lambda item: ", ".join(item["settings"]["languages"]),
    "upload quota": lambda item: f"{item['settings']['uploadQuotaBytes']:,}",
}


@click.group("project", cls=HelpGroup)
def project() -> None:
    """Create, list, show and change projects."""


@project.command(
    "create", examples=["deskwire project create Shop", "deskwire project create Shop --org Acme"]
)
@click.argument("name")
@click.option("--org", "organisation", help="Organisation (id or name); needed if there are several.")
@common_options
def create(name: str, organisation: str | None, data: Path | None, as_json: bool) -> None:
    """Create a project and print its id."""
    result = invoke(data, "project.create", organisation=organisation, project={"name": name})
    show_created(result, as_json, "id", f"The project {name} was created.")


@project.command("list", examples=["deskwire project list --org Acme"])
@click.option("--org", "organisation", help="Only projects of this organisation (id or name).")
@common_options
def list_all(organisation: str | None, data: Path | None, as_json: bool) -> None:
    """List projects, newest first."""
    show(query(data, "project.list", organisation=organisation), as_json, COLUMNS)


@project.command("show", examples=["deskwire project show Shop"])
@click.argument("project", required=False)
@common_options
def show_one(project: str | None, data: Path | None, as_json: bool) -> None:
    """Show a PROJECT (id or name) with its settings. PROJECT is optional if there is only one."""
    show(query(data, "project.show", project=project), as_json, DETAILS)


@project.command(
    "set",
    examples=[
        "deskwire project set Shop --archived-days 90 --no-memory",
        "deskwire project set Shop --languages en,de --primary-language de",
    ],
)
@click.argument("project", required=False)
@click.option("--name", help="New name.")
@click.option("--memory/--no-memory", default=None, help="Whether contacts have memory entries.")
@click.option(
    "--archived-days", metavar="DAYS|never", help="Days after which archived conversations are deleted."
)
@click.option("--primary-language", metavar="TAG", help="Language of content that names none, such as en.")
@click.option("--languages", metavar="TAG,TAG", help="All languages, including the primary one.")
@click.option(
    "--upload-quota", type=int, metavar="BYTES", help="Total size that the project's uploads may have."
)
@common_options
def change(
    project: str | None,
    name: str | None,
    memory: bool | None,
    archived_days: str | None,
    primary_language: str | None,
    languages: str | None,
    upload_quota: int | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Change a PROJECT's name or settings. Options that are not given leave their setting as it is."""
    chosen: dict[str, Any] = {
        "memoryEnabled": memory,
        "primaryLanguage": primary_language,
        "languages": None if languages is None else [tag.strip() for tag in languages.split(",")],
        "uploadQuotaBytes": upload_quota,
    }
    settings = {field: value for field, value in chosen.items() if value is not None}
    if archived_days is not None:
        settings["archivedRetentionDays"] = _days(archived_days)
    wanted: dict[str, Any] = {"settings": settings} if settings else {}
    if name is not None:
        wanted["name"] = name
    if not wanted:
        raise click.UsageError("There is nothing to change; see --help.")
    show(invoke(data, "project.set", project=project, change=wanted), as_json, DETAILS)


def _days(text: str) -> int | None:
    if text == "never":
        return None
    if not text.isdecimal():
        raise click.UsageError("--archived-days takes a whole number or `never`.")
    return int(text)
