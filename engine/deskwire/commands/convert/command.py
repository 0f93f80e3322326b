"""`deskwire convert` and its options. Its modules are imported when it runs."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

import click

from deskwire.commands.shell.help import HelpCommand

SOURCES: Final = ("chatwoot", "intercom", "zendesk")


@click.command(
    "convert",
    cls=HelpCommand,
    examples=[
        "deskwire convert zendesk tickets.json users.json --output history.ndjson",
        "deskwire convert intercom conversations.json --by-email | deskwire import -",
    ],
)
@click.argument("source", type=click.Choice(SOURCES))
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the lines to this file instead of the standard output.",
)
@click.option(
    "--by-email",
    is_flag=True,
    help="Use the email address as the userId of a customer without an external id.",
)
@click.option(
    "--plain-text",
    is_flag=True,
    help="Read bodies of Intercom as plain text: the export was fetched with display_as=plaintext.",
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write each record that is omitted or changed to this file as JSON, with the reason.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print no progress.")
@click.pass_context
def convert_command(
    ctx: click.Context,
    source: str,
    files: tuple[Path, ...],
    output: Path | None,
    by_email: bool,
    plain_text: bool,
    report: Path | None,
    quiet: bool,
) -> None:
    """Convert exports of another service to the lines that `deskwire import` takes; - reads the standard input.

    Give all FILES of an export in one call, in any order: tickets, comments and users belong together. Files of an earlier
    export may be included: the newest version of each record counts. Every few seconds the error output has a line with the
    progress. Omitted records are counted on the error output, with
    the reason. The exit status is 1 if a file has broken records.
    """
    from deskwire.commands.convert.intercom import Intercom
    from deskwire.commands.convert.progress import ConversionProgress
    from deskwire.commands.convert.reading import UnfitFileError
    from deskwire.commands.convert.run import SOURCES as READERS
    from deskwire.commands.convert.run import convert
    from deskwire.commands.convert.tally import ConversionTally
    from deskwire.engine.core.clock import wall_clock

    if plain_text and source != "intercom":
        raise click.UsageError(
            "--plain-text is for intercom: the other sources declare the format of each text."
        )
    reading: list[str] = []

    def opened() -> Iterator[tuple[str, BinaryIO]]:
        for path in files:
            reading[:] = [str(path)]
            with ExitStack() as each:
                yield str(path), sys.stdin.buffer if str(path) == "-" else each.enter_context(path.open("rb"))
        reading.clear()

    with ExitStack() as stack:
        try:
            target = sys.stdout.buffer if output is None else stack.enter_context(output.open("wb"))
            tally = ConversionTally(None if report is None else stack.enter_context(report.open("w")))
            reader = Intercom(plain_text=True) if plain_text else READERS[source]()
            progress = ConversionProgress(None if quiet else partial(click.echo, err=True))
            convert(reader, opened(), target, tally, by_email=by_email, now=wall_clock(), progress=progress)
            target.flush()
        except UnfitFileError as error:
            raise click.ClickException(f"{reading[0]} can't be read: {error}.") from error
        except (OSError, sqlite3.Error) as error:
            raise click.ClickException(f"The conversion could not finish: {error}.") from error
    click.echo("\n".join(tally.summary()), err=True)
    ctx.exit(1 if tally.faulty else 0)
