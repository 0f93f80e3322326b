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
    """Create or update the tables of a PostgreSQL database, as an account that may; then a node needs no right to do so.

    Nodes may be running: an update that needs them stopped is refused, and changes nothing. Partitions of the next days are added.
    """
    with refusals():
        from deskwire.storage.postgres.migrations.apply import migrate as applied
        from deskwire.storage.postgres.operating.days import add_days
        from deskwire.storage.postgres.operating.preflight import examine

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
    """Rewrite all tables of a PostgreSQL database, so that their files have no byte of what was erased before.

    Fails if a transaction that began before goes on, as PostgreSQL keeps what was erased for it, and names its session.

    Each table is locked while it is rewritten, and takes its room twice. WAL, standbys and backups keep what they have for as
    long as their retention says.
    """
    with refusals():
        from deskwire.storage.postgres.operating.scrub import rewrite

        sizes: dict[str, int] = {}
        for table, size in rewrite(given_url(url)):
            click.echo(f"{table}: {size:,} bytes", err=True)
            sizes[table] = size
    if as_json:
        print_json({"bytes": sizes})
        return
    click.echo("No table's file has a byte of what was erased before the command began.")


@click.command(
    "restored", cls=HelpCommand, examples=["deskwire restored --skip-pending", "deskwire restored --moved"]
)
@url_option
@click.option(
    "--skip-pending", is_flag=True, help="Do not send the deliveries that were pending at that moment."
)
@click.option(
    "--moved",
    is_flag=True,
    help="The database is whole, and only on another server, as after pg_upgrade: accept that server, and change nothing else.",
)
@json_option("JSON")
def restored(url: str | None, skip_pending: bool, moved: bool, as_json: bool) -> None:
    """Make a PostgreSQL database ready that was restored to an earlier moment, or moved to another server.

    Stop all nodes before. Without --moved it forgets the nodes of that moment and what they were at. Deliveries that were
    pending are sent when a node starts, some of them for the second time.
    """
    if moved and skip_pending:
        raise click.UsageError("--moved keeps everything, so it can't be used with --skip-pending.")
    with refusals():
        from deskwire.engine.core.clock import wall_clock
        from deskwire.storage.postgres.operating.restored import accept_moved, begin_anew

        if moved:
            accept_moved(given_url(url))
            skipped = 0
        else:
            skipped = begin_anew(given_url(url), skip_pending=skip_pending, now=wall_clock())
    if as_json:
        print_json({"skippedDeliveries": skipped})
        return
    click.echo("The database is ready: start the nodes.")
    if skip_pending:
        click.echo(f"{skipped:,} pending deliveries are skipped; `deskwire redeliver` sends them after all.")
