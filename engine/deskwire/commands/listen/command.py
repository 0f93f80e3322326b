"""`deskwire listen` and its options. Its modules are imported when it runs, so that other commands start fast."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from deskwire.commands.api_client.access import access_options, find_access
from deskwire.commands.shell.help import HelpCommand

if TYPE_CHECKING:
    from deskwire.commands.listen.screen import ListenOutput
    from deskwire.engine.core.http1 import Header

Form = Literal["auto", "json"]
_SECRET: Final = re.compile(r"whsec_[!-~]{1,200}")
_STARTS: Final = ("now", "beginning")


@click.command(
    "listen",
    cls=HelpCommand,
    examples=[
        "deskwire listen --forward localhost:3000/hook",
        "deskwire listen --forward localhost:3000/hook --events message.created",
        "deskwire listen --from beginning --once --json",
    ],
)
@click.option(
    "-f",
    "--forward",
    "--forward-to",
    "forward",
    metavar="URL",
    help="Receiver to post deliveries to, such as localhost:3000/hook; without it, events are only printed.",
)
@access_options
@click.option(
    "--events",
    metavar="TYPES",
    help="Event types, separated by commas; without it, all of the contract. Extensions must be named.",
)
@click.option(
    "--from",
    "start",
    metavar="now|beginning|evt_...",
    help="Where to begin; default: where the last run ended, and now for the first run.",
)
@click.option(
    "--secret",
    metavar="whsec_...",
    help="Signing secret; without it, one is generated and kept with the cursor.",
)
@click.option(
    "-H",
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="Additional header to send with each delivery; may be repeated.",
)
@click.option(
    "--cursor",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the cursor; default: one per service and project in the user's state directory.",
)
@click.option("--once", is_flag=True, help="Exit once everything that is stored has been forwarded.")
@click.option(
    "--json",
    "form",
    flag_value="json",
    default="auto",
    help="Print a JSON object per delivery for scripts, or the event itself if nothing is posted.",
)
@click.pass_context
def listen(
    ctx: click.Context,
    forward: str | None,
    url: str | None,
    key: str | None,
    cacert: Path | None,
    data: Path,
    events: str | None,
    start: str | None,
    secret: str | None,
    headers: tuple[str, ...],
    cursor: Path | None,
    once: bool,
    form: Form,
) -> None:
    """Forward the project's events to a receiver on your machine, signed like webhooks, for development.

    After a restart of the command, the service or the receiver it continues where it stopped. While the receiver is down,
    it waits. An event that the receiver fails to accept is tried four times, then skipped. Stop it with Ctrl-C.

    Without --forward, events are printed and nothing is posted.
    """
    import trio

    from deskwire.commands.listen.run import ListenOptions, run_listen

    if forward is None and (secret is not None or headers):
        raise click.UsageError("--secret and --header have no effect without --forward.")
    plan = ListenOptions(
        forward=None if forward is None else _receiver(forward),
        headers=_headers(headers),
        secret=_secret(secret),
        start=_start(start),
        cursor=cursor,
        state=_state_directory(),
        events=_types(events),
        once=once,
        access=find_access(url, key, data, cacert),
    )
    ctx.exit(trio.run(run_listen, plan, _screen(form, forward is not None)))


def _screen(form: Form, forwarding: bool) -> ListenOutput:
    from rich.console import Console

    from deskwire.commands.listen.screen import JsonOutput, LineOutput, LiveTable

    if form == "json":
        return JsonOutput()
    return LiveTable(Console()) if forwarding and sys.stdout.isatty() else LineOutput()


def _receiver(target: str) -> str:
    from deskwire.commands.listen.receiver import BadReceiverUrl, receiver_url

    try:
        return receiver_url(target)
    except BadReceiverUrl as error:
        raise click.UsageError(f"--forward: {error}") from error


def _headers(given: tuple[str, ...]) -> tuple[Header, ...]:
    from deskwire.commands.listen.receiver import BadHeaders, parse_headers

    try:
        return parse_headers(given)
    except BadHeaders as error:
        raise click.UsageError(f"--header:\n{error}") from error


def _secret(secret: str | None) -> str | None:
    if secret is not None and not _SECRET.fullmatch(secret):
        raise click.UsageError(
            "--secret must be whsec_ and 1 to 200 printable ASCII characters without blanks."
        )
    return secret


def _start(start: str | None) -> str | None:
    from deskwire.engine.core.ids import is_id

    if start is not None and start not in _STARTS and not is_id(start, "evt"):
        raise click.UsageError("--from must be now, beginning, or an event id (evt_ and 26 characters).")
    return start


def _types(listed: str | None) -> frozenset[str]:
    """Return the listed event types. Raises UsageError that names every unknown type."""
    from deskwire.engine.events.types import CONFIDENTIAL, NAMEABLE, STORED

    names = [name.strip() for name in listed.split(",")] if listed else []
    flaws = [
        f"{name} is sent by webhook only: the feed has no notes."
        if name in CONFIDENTIAL
        else f"There is no stored event type {name!r}."
        for name in names
        if name not in STORED | NAMEABLE
    ]
    if flaws:
        raise click.UsageError("--events: " + " ".join(flaws))
    return frozenset(names)


def _state_directory() -> Path:
    """Return the directory for state that needs no backup (XDG base directories)."""
    given = os.environ.get("XDG_STATE_HOME", "")
    return Path(given) if Path(given).is_absolute() else Path.home() / ".local" / "state"
