"""`deskwire secret`: the installation's own."""

from __future__ import annotations

from pathlib import Path

import click

from deskwire.commands.admin.invocation import invoke
from deskwire.commands.shell.help import HelpGroup
from deskwire.commands.shell.options import common_options
from deskwire.commands.shell.output import print_json

DAY_S = 86_400


@click.group("secret", cls=HelpGroup)
def secret() -> None:
    """Replace the installation's secret."""


@secret.command("rotate", examples=["deskwire secret rotate", "deskwire secret rotate --overlap 0"])
@click.option(
    "--overlap",
    type=click.IntRange(0, 366 * DAY_S),
    default=DAY_S,
    show_default=True,
    metavar="SECONDS",
    help="How long signatures of the old secret are still accepted; 0 ends them at once.",
)
@common_options
def rotate(overlap: int, data: Path | None, as_json: bool) -> None:
    """Replace the secret with a new one. The server may be running; nothing needs to be registered again.

    Access tokens and links to files that the old secret signed stay valid until the overlap ends.
    """
    result = invoke(data, "secret.rotate", overlapS=overlap)
    if as_json:
        print_json(result)
        return
    click.echo(
        f"The secret has been replaced, and {result['sealedAnew']} stored secrets of webhooks, channels, authenticator apps and "
        "waiting mails are encrypted with it. "
        f"Signatures of the old secret are accepted until {result['formerUntil']}.",
        err=True,
    )
    click.echo("Store a copy of the new secret; earlier backups need the old one.", err=True)
