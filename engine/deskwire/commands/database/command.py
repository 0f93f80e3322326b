"""`deskwire migrate`, `deskwire scrub` and `deskwire restored`."""

from __future__ import annotations

import click

from deskwire.commands.database.access import given_url, refusals, url_option
from deskwire.commands.shell.help import HelpCommand
from deskwire.commands.shell.options import json_option
from deskwire.commands.shell.output import print_json


@click.command("migrate", cls=HelpCommand, examples=["deskwire migrate"])
@url_option
@json_option("JSON")
def migrate(url: str | None, as_json: bool) -> None:
    """Create or update the tables of a PostgreSQL database, so that the nodes' account needs no right to do so.

    Nodes may be running: an update that needs them stopped is refused and changes nothing. Partitions for the next days are added.
    """
    with refusals():
        from deskwire.storage.postgres.admin.days import add_days
        from deskwire.storage.postgres.admin.preflight import examine
        from deskwire.storage.postgres.migrations.apply import migrate as applied

        address = given_url(url)
        examine(address)
        names = applied(address)
        add_days(address)
    if as_json:
        print_json({"applied": names})
        return
    click.echo("\n".join(f"Applied {name}." for name in names) or "The database is up to date.")


@click.command("scrub", cls=HelpCommand, examples=["deskwire scrub"])
@url_option
@json_option("JSON")
def scrub(url: str | None, as_json: bool) -> None:
    """Rewrite all tables of a PostgreSQL database, so that no bytes of erased data remain in their files.

    Fails if an older transaction is still open, because PostgreSQL keeps erased rows for it, and names its session.

    Each table is locked while it is rewritten, and temporarily needs twice its space. WAL, standbys and backups keep their contents
    according to their retention.
    """
    with refusals():
        from deskwire.storage.postgres.admin.scrub import rewrite_tables

        sizes: dict[str, int] = {}
        for table, size in rewrite_tables(given_url(url)):
            click.echo(f"{table}: {size:,} bytes", err=True)
            sizes[table] = size
    if as_json:
        print_json({"bytes": sizes})
        return
    click.echo("The files of the tables have no bytes of data that was erased before the command started.")


@click.command(
    "restored", cls=HelpCommand, examples=["deskwire restored --skip-pending", "deskwire restored --moved"]
)
@url_option
@click.option(
    "--skip-pending", is_flag=True, help="Do not send the deliveries that were pending at that time."
)
@click.option(
    "--moved",
    is_flag=True,
    help="The database is complete but on another server, as after pg_upgrade: accept that server, and change nothing else.",
)
@json_option("JSON")
def restored(url: str | None, skip_pending: bool, moved: bool, as_json: bool) -> None:
    """Prepare a PostgreSQL database that was restored to an earlier time, or moved to another server.

    Stop all nodes first. Without --moved, the nodes of that time and their work in progress are removed. Deliveries that were
    pending are sent when a node starts; some may be sent twice.
    """
    if moved and skip_pending:
        raise click.UsageError("--moved keeps all deliveries, so it can't be used with --skip-pending.")
    with refusals():
        from deskwire.engine.core.clock import wall_clock
        from deskwire.storage.postgres.admin.installation import (
            accept_moved_database,
            reset_restored_database,
        )

        if moved:
            accept_moved_database(given_url(url))
            skipped = 0
        else:
            skipped = reset_restored_database(given_url(url), skip_pending=skip_pending, now=wall_clock())
    if as_json:
        print_json({"skippedDeliveries": skipped})
        return
    click.echo("The database is ready: start the nodes.")
    if skip_pending:
        click.echo(f"{skipped:,} pending deliveries are skipped; `deskwire redeliver` sends them after all.")
