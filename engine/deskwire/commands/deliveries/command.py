"""`deskwire deliveries` and `deskwire redeliver`. Their modules are imported when they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import click

from deskwire.commands.api_client.access import with_access
from deskwire.commands.api_client.call import call
from deskwire.commands.shell.help import HelpCommand, HelpGroup
from deskwire.commands.shell.options import json_option
from deskwire.commands.shell.output import print_json, print_lines, width

if TYPE_CHECKING:
    from deskwire.commands.api_client.access import ServiceAccess

STATUSES: Final = ("pending", "delivered", "dropped", "skipped")


class _ListByDefault(HelpGroup):
    """A group with `list` as its default command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `list` before the arguments unless they start with a command or ask for help."""
        if not args or args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group("deliveries", cls=_ListByDefault)
def deliveries() -> None:
    """Show the log of webhook deliveries: list them with `deskwire deliveries [ENDPOINT]`, or show one with its attempts.

    `list` is the default: its options may follow `deskwire deliveries` directly.
    """


@deliveries.command(
    "list",
    examples=[
        "deskwire deliveries",
        "deskwire deliveries --status dropped --since 2h",
        "deskwire deliveries list --json",
    ],
)
@click.argument("endpoint", required=False, metavar="[whk_...]")
@click.option("--status", type=click.Choice(STATUSES), help="Only deliveries with this outcome.")
@click.option("--type", "event_type", metavar="TYPE", help="Only deliveries of this event type.")
@click.option("--conversation", metavar="cnv_...", help="Only deliveries of this conversation.")
@click.option(
    "--since", metavar="TIME", help="Only deliveries since this time (ISO 8601), or since 30m, 2h or 7d ago."
)
@click.option("--until", metavar="TIME", help="Only deliveries before this time.")
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="Show at most this many, the newest.",
)
@with_access
@json_option("one JSON object per line")
def list_command(
    endpoint: str | None,
    status: str | None,
    event_type: str | None,
    conversation: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    access: ServiceAccess,
    as_json: bool,
) -> None:
    """List deliveries of one endpoint or of all the project's endpoints, newest first."""
    from deskwire.commands.deliveries.delivery_log import list_deliveries
    from deskwire.commands.shell.times import time_of

    options = {
        "status": status,
        "type": event_type,
        "conversation": conversation,
        "since": time_of("--since", since),
        "until": time_of("--until", until),
    }
    filters = {name: value for name, value in options.items() if value is not None}
    known = None if endpoint is None else _id("ENDPOINT", endpoint, "whk")
    newest = call(access, lambda service: list_deliveries(service, known, filters, limit))
    if as_json:
        print_lines(newest)
    elif newest:
        _print_table(newest)
    else:
        click.echo("No deliveries.", err=True)


@deliveries.command("show", examples=["deskwire deliveries show dlv_01JC4T2V9QZ6D3M8W5N7R1XKPH"])
@click.argument("delivery", metavar="dlv_...")
@with_access
@json_option("JSON")
def show_command(delivery: str, access: ServiceAccess, as_json: bool) -> None:
    """Show one delivery with all its attempts and the receiver's responses."""
    from deskwire.commands.deliveries.delivery_log import delivery_lines, get_delivery

    known = _id("DELIVERY", delivery, "dlv")
    document = call(access, lambda service: get_delivery(service, known))
    if as_json:
        print_json(document)
    else:
        click.echo("\n".join(delivery_lines(document)))


@click.command(
    "redeliver",
    cls=HelpCommand,
    examples=[
        "deskwire redeliver dlv_01JC4T2V9QZ6D3M8W5N7R1XKPH",
        "deskwire redeliver --endpoint whk_01JC4T2V9QZ6D3M8W5N7R1XKPH --since 1d --dry-run",
    ],
)
@click.argument("delivery", required=False, metavar="[dlv_...]")
@click.option("--endpoint", metavar="whk_...", help="Send everything again that this endpoint missed.")
@click.option("--since", metavar="TIME|evt_...", help="With --endpoint: the time or event to start after.")
@click.option("--dry-run", is_flag=True, help="With --endpoint: only count the deliveries.")
@with_access
@json_option("JSON")
def redeliver_command(
    delivery: str | None,
    endpoint: str | None,
    since: str | None,
    dry_run: bool,
    access: ServiceAccess,
    as_json: bool,
) -> None:
    """Send a delivery again; with --endpoint and --since, send all that were dropped or skipped."""
    from deskwire.commands.shell.times import time_or_event

    if (delivery is None) == (endpoint is None) or (endpoint is None) != (since is None):
        raise click.UsageError("Give a delivery, or --endpoint with --since.")
    if delivery is not None and dry_run:
        raise click.UsageError("--dry-run goes with --endpoint.")
    if delivery is not None:
        _send_again(_id("DELIVERY", delivery, "dlv"), access, as_json)
    elif endpoint is not None and since is not None:
        known = _id("--endpoint", endpoint, "whk")
        _send_all_again(known, time_or_event("--since", since), dry_run, access, as_json)


def _send_again(delivery: str, access: ServiceAccess, as_json: bool) -> None:
    from deskwire.commands.deliveries.delivery_log import redeliver
    from deskwire.commands.shell.output import visible

    made = call(access, lambda service: redeliver(service, delivery))
    if as_json:
        print_json(made)
    else:
        new = visible(made["id"])
        click.echo(f"Sent again as {new}; `deskwire deliveries show {new}` shows the result.")


def _send_all_again(endpoint: str, since: str, dry_run: bool, access: ServiceAccess, as_json: bool) -> None:
    from deskwire.commands.deliveries.delivery_log import recover, recovery_lines

    result = call(access, lambda service: recover(service, endpoint, since, dry_run))
    if as_json:
        print_json(result)
    else:
        click.echo("\n".join(recovery_lines(result, dry_run)))


def _print_table(deliveries: list[dict[str, Any]]) -> None:
    from rich.console import Console

    from deskwire.commands.deliveries.delivery_log import delivery_table

    console = Console(width=width())
    console.print(delivery_table(deliveries, console.width))


def _id(name: str, text: str, prefix: Literal["whk", "dlv"]) -> str:
    from deskwire.engine.core.ids import is_id

    if not is_id(text, prefix):
        raise click.UsageError(f"{name} must be {prefix}_ and 26 characters, not {text!r}.")
    return text
