"""`deskwire credential`: the machine credentials of a project, whose secrets are shown once."""

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
    "permissions": lambda item: " ".join(item["permissions"]),
    "secret": itemgetter("secret"),
    "created": itemgetter("createdAt"),
    "created by": lambda item: _maker(item["createdBy"]),
    "expires": itemgetter("expiresAt"),
    "last used": itemgetter("lastUsedAt"),
    "revoked": itemgetter("revokedAt"),
}


def _maker(maker: dict[str, Any]) -> str:
    words = maker["id"] or maker["type"]
    return words if maker["state"] == "active" else f"{words} ({maker['state']})"


_DAY_S: Final = 86_400
_PROJECT: Final = click.option("--project", help="Project (id or name); needed if there are several.")


@click.group("credential", cls=HelpGroup)
def credential() -> None:
    """Create, list, rotate and revoke machine credentials."""


@credential.command(
    "create",
    examples=[
        "deskwire credential create CRM --permission tickets.read",
        "deskwire credential create CRM --permission tickets.manage --expires-at 2027-01-31T00:00:00Z",
    ],
)
@click.argument("name")
@click.option(
    "--permission",
    "permissions",
    multiple=True,
    metavar="PERMISSION",
    help="A permission such as tickets.manage; may be given several times.",
)
@click.option(
    "--expires-at",
    metavar="TIME",
    help="When it expires, as 2027-01-31T00:00:00Z; without this never, or as late as DESKWIRE_CREDENTIAL_MAX_S allows.",
)
@_PROJECT
@common_options
def create(
    name: str,
    permissions: tuple[str, ...],
    expires_at: str | None,
    project: str | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Create a machine credential with this NAME and print its secret. It is not shown again."""
    result = invoke(
        data,
        "credential.create",
        project=project,
        name=name,
        permissions=[*permissions],
        expiresAt=expires_at,
    )
    words = f"The machine credential {result['id']} was created. Its secret is shown only this once:"
    show_created(result, as_json, "secret", words)


@credential.command("list", examples=["deskwire credential list --project Shop"])
@_PROJECT
@common_options
def list_all(project: str | None, data: Path | None, as_json: bool) -> None:
    """List a project's machine credentials, newest first, masked, with the time of their last use."""
    show(query(data, "credential.list", project=project), as_json, COLUMNS)


@credential.command(
    "rotate", examples=["deskwire credential rotate mcr_01JC4T2V9QZ6D3M8W5N7R1XKPH --overlap 3600"]
)
@click.argument("credential", metavar="mcr_...")
@click.option(
    "--overlap",
    type=int,
    default=_DAY_S,
    show_default=True,
    metavar="SECONDS",
    help="How long the previous secret remains valid.",
)
@common_options
def rotate(credential: str, overlap: int, data: Path | None, as_json: bool) -> None:
    """Give a CREDENTIAL (its id from `credential list`) a new secret and print it. It is not shown again."""
    result = invoke(data, "credential.rotate", credential=credential, overlapSeconds=overlap)
    words = f"The machine credential {result['id']} has a new secret, which is shown only this once."
    if result["previousExpiresAt"]:
        words += f" The previous secret is valid until {result['previousExpiresAt']}."
    show_created(result, as_json, "secret", words)


@credential.command("revoke", examples=["deskwire credential revoke mcr_01JC4T2V9QZ6D3M8W5N7R1XKPH"])
@click.argument("credential", metavar="mcr_...")
@common_options
def revoke(credential: str, data: Path | None, as_json: bool) -> None:
    """Revoke a CREDENTIAL (its id from `credential list`): calls with it fail at once, and its streams end."""
    show(invoke(data, "credential.revoke", credential=credential), as_json, COLUMNS)
