"""`deskwire key` and `deskwire token`: credentials, each shown once."""

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
    "label": itemgetter("label"),
    "key": itemgetter("key"),
    "created": itemgetter("createdAt"),
    "last used": itemgetter("lastUsedAt"),
    "expires": itemgetter("expiresAt"),
    "revoked": itemgetter("revokedAt"),
}
HOUR_S: Final = 3_600
_PROJECT: Final = click.option("--project", help="Project (id or name); needed if there are several.")


@click.group("key", cls=HelpGroup)
def key() -> None:
    """Create, list and revoke server keys."""


@key.command(
    "create",
    examples=["KEY=$(deskwire key create --label backend)", "deskwire key create --project Shop --json"],
)
@click.option("--label", default="made by deskwire key", show_default=True, help="Purpose of the key.")
@_PROJECT
@click.option(
    "--expires-at",
    metavar="TIME",
    help="When it expires, as 2027-01-31T00:00:00Z; without this never, or as late as DESKWIRE_CREDENTIAL_MAX_S allows.",
)
@common_options
def create(label: str, project: str | None, expires_at: str | None, data: Path | None, as_json: bool) -> None:
    """Create a server key and print it. It is not shown again."""
    result = invoke(data, "key.create", project=project, label=label, expiresAt=expires_at)
    show_created(
        result, as_json, "key", f"The server key {result['id']} was created. It is shown only this once:"
    )


@key.command("list", examples=["deskwire key list --project Shop"])
@_PROJECT
@common_options
def list_all(project: str | None, data: Path | None, as_json: bool) -> None:
    """List a project's keys, newest first, masked, with the time of their last use."""
    show(query(data, "key.list", project=project), as_json, COLUMNS)


@key.command("revoke", examples=["deskwire key revoke key_01JC4T2V9QZ6D3M8W5N7R1XKPH"])
@click.argument("key", metavar="key_...")
@common_options
def revoke(key: str, data: Path | None, as_json: bool) -> None:
    """Revoke a KEY (its id from `key list`): calls with it fail at once, and its streams end."""
    show(invoke(data, "key.revoke", key=key), as_json, COLUMNS)


TOKENS: Final[Columns] = {
    "id": itemgetter("id"),
    "source": itemgetter("source"),
    "client": itemgetter("client"),
    "created": itemgetter("createdAt"),
    "expires": itemgetter("expiresAt"),
}
ENDED: Final[Columns] = {
    "id": itemgetter("id"),
    "user": itemgetter("userId"),
    "ended": lambda item: "yes" if item["ended"] else "no",
}


@click.group("token", cls=HelpGroup)
def token() -> None:
    """Issue, list and end access tokens."""


@token.command("create", examples=["TOKEN=$(deskwire token create --user ada@example.com --ttl 600)"])
@click.option("--user", required=True, help="User (id or e-mail address) that the token is issued for.")
@click.option(
    "--ttl",
    type=int,
    default=HOUR_S,
    show_default=True,
    metavar="SECONDS",
    help="How long the token is valid.",
)
@common_options
def create_token(user: str, ttl: int, data: Path | None, as_json: bool) -> None:
    """Issue an access token and print it. It is not shown again."""
    result = invoke(data, "token.create", user=user, ttlS=ttl)
    show_created(
        result,
        as_json,
        "token",
        f"The token is valid until {result['expiresAt']}. It is shown only this once:",
    )


@token.command("list", examples=["deskwire token list --user ada@example.com"])
@click.option("--user", required=True, help="User (id or e-mail address) whose tokens are listed.")
@common_options
def list_tokens(user: str, data: Path | None, as_json: bool) -> None:
    """List the valid access tokens of a user, newest first. Tokens of an identity provider are not listed."""
    show(query(data, "token.list", user=user), as_json, TOKENS)


@token.command("end", examples=["deskwire token end tok_01JC4T2V9QZ6D3M8W5N7R1XKPH"])
@click.argument("token", metavar="tok_...")
@common_options
def end_one(token: str, data: Path | None, as_json: bool) -> None:
    """End a TOKEN (its id from `token list`) before it expires: calls with it fail, and its streams end."""
    show(invoke(data, "token.end", token=token), as_json, ENDED)
