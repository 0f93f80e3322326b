"""`deskwire user`: accounts, passwords, and what they are members of."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Final

import click

from deskwire.commands.admin.invocation import invoke, query
from deskwire.commands.shell.help import HelpGroup
from deskwire.commands.shell.options import common_options, yes_option
from deskwire.commands.shell.output import Columns, show, show_created
from deskwire.commands.shell.questions import confirm, confirm_new_password, new_password, password_options
from deskwire.commands.shell.refusals import RefusedCommand

COLUMNS: Final[Columns] = {
    "id": itemgetter("id"),
    "e-mail": itemgetter("email"),
    "name": itemgetter("name"),
    "member of": lambda item: ", ".join(
        f"{each['name']} ({each['roleName']})" for each in item["memberships"]
    ),
    "created": itemgetter("createdAt"),
}
MEMBER: Final[Columns] = {
    "id": itemgetter("id"),
    "e-mail": itemgetter("email"),
    "name": itemgetter("name"),
    "role": itemgetter("role"),
    "since": itemgetter("joinedAt"),
}
_ORG: Final = click.option(
    "--org", "organisation", help="Organisation (id or name); needed if there are several."
)
_ROLE_HELP: Final = "owner, admin, agent, viewer, or one of the organisation's own (id or name)"
_ROLE: Final = click.option("--role", required=True, help=f"Role in the organisation: {_ROLE_HELP}.")


@click.group("user", cls=HelpGroup)
def user() -> None:
    """Create, list and delete users, set passwords, and add, change and remove memberships."""


@user.command(
    "create",
    examples=[
        "deskwire user create ada@example.com --role owner",
        "deskwire user create bob@example.com --org Acme --role agent --one-time",
    ],
)
@click.argument("email")
@click.option("--name", help="Name that customers and colleagues see; default: the address.")
@click.option("--org", "organisation", help="Organisation (id or name) to join; needs --role.")
@click.option("--role", help=f"Role in --org, or in the only organisation: {_ROLE_HELP}.")
@password_options
@common_options
def create(
    email: str,
    name: str | None,
    organisation: str | None,
    role: str | None,
    password_stdin: bool,
    one_time: bool,
    data: Path | None,
    as_json: bool,
) -> None:
    """Create an account, and ask for its password. With --role it becomes a member."""
    if organisation is not None and role is None:
        raise click.UsageError("--org needs --role.")
    password = new_password(password_stdin, one_time)
    result = invoke(
        data, "user.create", email=email, name=name, password=password, organisation=organisation, role=role
    )
    words = f"The user {email} was created"
    if password is None:
        ends = f"This one-time password is shown only this once, and ends at {result['passwordEndsAt']}:"
        show_created(result, as_json, "password", f"{words}. {ends}")
    else:
        show_created(result, as_json, "id", f"{words}.")


@user.command("list", examples=["deskwire user list --org Acme"])
@click.option("--org", "organisation", help="Only members of this organisation (id or name).")
@common_options
def list_all(organisation: str | None, data: Path | None, as_json: bool) -> None:
    """List users with their memberships, oldest first."""
    show(query(data, "user.list", organisation=organisation), as_json, COLUMNS)


@user.command(
    "password",
    examples=["deskwire user password ada@example.com", "deskwire user password ada@example.com --one-time"],
)
@click.argument("user")
@password_options
@common_options
def password(user: str, password_stdin: bool, one_time: bool, data: Path | None, as_json: bool) -> None:
    """Change the password of a USER (id or e-mail address). All the user's tokens end."""
    given = new_password(password_stdin, one_time)
    result = invoke(data, "user.password", user=user, password=given)
    words = f"The password of {result['email']} has been changed."
    if given is None:
        ends = f"until {result['passwordEndsAt']}"
        words = f"{words} It is shown only this once and is good for one sign-in, {ends}:"
    show_created(result, as_json, "password", words)


@user.command("first-owner-link", examples=["deskwire user first-owner-link"])
@common_options
def first_owner_link(data: Path | None, as_json: bool) -> None:
    """Print a one-time link for the first account of an installation without a demo. Its owner owns the organisation.

    The link works once and for 7 days, and only while there is no account.
    """
    result = invoke(data, "user.first-owner-link", make=True)
    show_created(
        result, as_json, "url", f"Open this link to create the first account, until {result['expiresAt']}:"
    )


@user.command("reset-factors", examples=["deskwire user reset-factors ada@example.com"])
@click.argument("user")
@common_options
def reset_factors(user: str, data: Path | None, as_json: bool) -> None:
    """Remove the second factors of a USER (id or e-mail address) who has lost them.

    The password stays. All sessions and tokens of the user end. First make sure that it is this person who asks.
    """
    result = invoke(data, "user.reset-factors", user=user)
    show_created(
        result,
        as_json,
        "id",
        f"{result['email']} signs in by the password alone until a new factor is added.",
    )


@user.command("add", examples=["deskwire user add ada@example.com --org Acme --role admin"])
@click.argument("user")
@_ORG
@_ROLE
@click.option(
    "--yes", is_flag=True, help="Give an account of another organisation a new password without asking."
)
@click.option(
    "--keep-password",
    is_flag=True,
    help="Keep the password: you are sure that only the owner of the address knows it.",
)
@common_options
def add(
    user: str,
    organisation: str | None,
    role: str,
    yes: bool,
    keep_password: bool,
    data: Path | None,
    as_json: bool,
) -> None:
    """Make a USER (id or e-mail address) a member of an organisation.

    Members of the organisation that an account was created for may know its password. In another one it gets a one-time
    password, meant only for the owner of the address, and all the user's tokens end. You are asked first.
    """
    if yes and keep_password:
        raise click.UsageError("--yes and --keep-password can't be used together.")
    asked = partial(invoke, data, "user.add", user=user, organisation=organisation, role=role)
    try:
        result = asked(password="new" if yes else "keep" if keep_password else None)
    except RefusedCommand as refusal:
        if refusal.code != "other_home":
            raise
        confirm_new_password(refusal)
        result = asked(password="new")
    if "password" in result:
        words = (
            f"{result['email']} is a member. Give this one-time password, which ends at {result['passwordEndsAt']}, to "
            "the owner of the address only:"
        )
        show_created(result, as_json, "password", words)
    else:
        show(result, as_json, MEMBER)


@user.command("role", examples=["deskwire user role ada@example.com --role admin"])
@click.argument("user")
@_ORG
@_ROLE
@common_options
def change_role(user: str, organisation: str | None, role: str, data: Path | None, as_json: bool) -> None:
    """Change a member's role."""
    show(invoke(data, "user.role", user=user, organisation=organisation, role=role), as_json, MEMBER)


@user.command("remove", examples=["deskwire user remove ada@example.com --org Acme"])
@click.argument("user")
@_ORG
@common_options
def remove(user: str, organisation: str | None, data: Path | None, as_json: bool) -> None:
    """Remove a membership. The account stays."""
    show(invoke(data, "user.remove", user=user, organisation=organisation), as_json, MEMBER)


@user.command(
    "delete", examples=["deskwire user delete ada@example.com", "deskwire user delete ada@example.com --yes"]
)
@click.argument("user")
@yes_option("Delete the account")
@common_options
def delete(user: str, yes: bool, data: Path | None, as_json: bool) -> None:
    """Delete a USER (id or e-mail address) for good, with all memberships.

    Sessions and access tokens end at once, also beside a running server, and nothing of the person is left in the database's
    files. The user's messages stay, with the name that they were sent under. The last owner of an organisation can't be deleted.
    """
    found = query(data, "user.show", user=user)
    within = ", ".join(f"{each['name']} ({each['roleName']})" for each in found["memberships"])
    confirm(
        f"The account {found['email']} will be deleted for good{f', and is then no member of {within}' if within else ''}.",
        yes,
    )
    result = invoke(data, "user.delete", user=found["id"])
    show_created(result, as_json, "id", f"The user {result['email']} has been deleted.")
