"""`deskwire event` and its commands. Their modules are imported when they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from deskwire.commands.api_client.access import with_access
from deskwire.commands.shell.help import HelpGroup
from deskwire.commands.shell.options import json_option

if TYPE_CHECKING:
    from deskwire.commands.api_client.access import ServiceAccess


@click.group("event", cls=HelpGroup)
def event() -> None:
    """Follow the events of a project."""


@event.command(
    "tail",
    examples=[
        "deskwire event tail",
        "deskwire event tail --types message.created,conversation.closed",
        "deskwire event tail --from beginning --once --json > events.ndjson",
    ],
)
@click.option(
    "--types",
    metavar="TYPES",
    help="Event types, separated by commas; default: all types of the contract. Extensions are shown only if listed.",
)
@click.option(
    "--from",
    "start",
    default="now",
    metavar="now|beginning|evt_...",
    help="Where to start: now, at the oldest stored event, or after an event.",
)
@click.option("--once", is_flag=True, help="Exit once everything that is stored has been printed.")
@with_access
@json_option("the envelope of each event on a line")
@click.pass_context
def tail(
    ctx: click.Context,
    types: str | None,
    start: str,
    once: bool,
    access: ServiceAccess,
    as_json: bool,
) -> None:
    """Print the events of the project as they happen, in order, until Ctrl-C.

    While the service is unavailable, the command waits and then continues. Its position is not saved: to continue in another run, give
    --from the id of the last event.
    """
    import trio

    from deskwire.commands.event.tail import TailOptions, run_tail

    plan = TailOptions(access, _types(types), _start(start), once, as_json)
    ctx.exit(trio.run(run_tail, plan))


def _types(listed: str | None) -> tuple[str, ...]:
    """Return the listed event types. Raises UsageError that names every unknown type."""
    from deskwire.engine.events.types import NAMEABLE, STORED

    names = tuple(name.strip() for name in listed.split(",")) if listed else ()
    strange = [name for name in names if name not in STORED and name not in NAMEABLE]
    if strange:
        raise click.UsageError(
            f"--types: There is no stored event type {', '.join(map(repr, strange))}; `deskwire reference events` lists them."
        )
    return names


def _start(start: str) -> str:
    from deskwire.engine.core.ids import is_id

    if start not in ("now", "beginning") and not is_id(start, "evt"):
        raise click.UsageError("--from must be now, beginning, or an event id (evt_ and 26 characters).")
    return start
