"""`deskwire import` and its options. Its modules are imported when it runs."""

from __future__ import annotations

import json
import os
import stat
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import click

from deskwire.commands.api_client.access import access_options, find_access
from deskwire.commands.shell.help import HelpCommand

if TYPE_CHECKING:
    from deskwire.commands.api_client.access import ServiceAccess
    from deskwire.commands.import_.run import ImportCallbacks, Totals


@click.command(
    "import",
    cls=HelpCommand,
    examples=[
        "deskwire import history.ndjson",
        "deskwire import history.ndjson --refused refused.ndjson",
        "zcat history.ndjson.gz | deskwire import -",
    ],
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--events", is_flag=True, help="Send events about everything new to webhooks, stream and feed.")
@click.option(
    "--refused",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write each refused line to FILE as JSON, with its number and its errors.",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the service may be unreachable before the import gives up.",
)
@access_options
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON for scripts.")
@click.pass_context
def import_command(
    ctx: click.Context,
    file: Path,
    events: bool,
    refused: Path | None,
    patience: float,
    url: str | None,
    key: str | None,
    cacert: Path | None,
    data: Path,
    as_json: bool,
) -> None:
    """Import conversations with their messages from FILE (NDJSON); - reads the standard input.

    It may be interrupted and repeated at any time: records imported before stay unchanged. The exit status is 0 if no line
    was refused, and 1 if some were or the import could not finish.
    """
    from deskwire.commands.import_.run import ImportCallbacks, Totals
    from deskwire.commands.import_.show import ImportOutput, summary

    access = find_access(url, key, data, cacert)
    totals = Totals()
    with ExitStack() as stack:
        source = _opened(stack, file)
        report = None if refused is None else _written(stack, refused)
        screen = ImportOutput(_size(source), report, live=sys.stderr.isatty())
        callbacks = ImportCallbacks(screen.progress, screen.refused, screen.doubted, screen.waiting)
        failure = _run(access, source, totals, callbacks, events, patience)
        screen.clear()
    click.echo(json.dumps(totals.document()) if as_json else "\n".join(summary(totals)))
    if failure is not None:
        advice = (
            f"The first {totals.lines:,} lines are acknowledged; run the same command again for the rest."
        )
        raise click.ClickException(f"{failure}\n{advice}")
    ctx.exit(1 if totals.refused else 0)


def _run(
    access: ServiceAccess,
    source: BinaryIO,
    totals: Totals,
    callbacks: ImportCallbacks,
    events: bool,
    patience_s: float,
) -> str | None:
    """Send the file. Return the reason of a failure, None after a success."""
    import trio

    from deskwire.commands.api_client.service import Service, ServiceError
    from deskwire.commands.import_.run import send_all

    async def run() -> None:
        async with Service(access) as service:
            await send_all(service, source, totals, callbacks, events=events, patience_s=patience_s)

    try:
        trio.run(run)
    except (ServiceError, OSError) as error:
        return str(error)
    except KeyboardInterrupt:
        return "Interrupted."
    return None


def _opened(stack: ExitStack, file: Path) -> BinaryIO:
    if str(file) == "-":
        return sys.stdin.buffer
    try:
        return stack.enter_context(file.open("rb"))
    except OSError as error:
        raise click.ClickException(f"{file} can't be read: {error.strerror}.") from error


def _written(stack: ExitStack, file: Path) -> TextIO:
    try:
        return stack.enter_context(file.open("w"))
    except OSError as error:
        raise click.ClickException(f"{file} can't be written: {error.strerror}.") from error


def _size(source: Any) -> int | None:
    """Return the size of a regular file in bytes; None for a pipe."""
    try:
        status = os.fstat(source.fileno())
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
