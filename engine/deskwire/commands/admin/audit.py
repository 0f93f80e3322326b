"""`deskwire audit`: the audit trail of one organisation or of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from deskwire.commands.admin.invocation import query
from deskwire.commands.shell.help import HelpGroup
from deskwire.commands.shell.options import data_option, json_option
from deskwire.commands.shell.output import Columns, print_lines, show, shown_progress
from deskwire.engine.core.values import ProgressReporter

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
PAGE: Final = 500


def _party(party: Mapping[str, Any]) -> str:
    """Return an actor's or object's most readable name."""
    return str(party["name"] or party["id"] or party["type"])


def _what(record: Mapping[str, Any]) -> str:
    """Return the changes and details, one per line."""
    changes = [f"{name}: {each['before']} → {each['after']}" for name, each in record["changes"].items()]
    return "\n".join([*changes, *(f"{name}: {value}" for name, value in record["details"].items())])


COLUMNS: Final[Columns] = {
    "at": itemgetter("at"),
    "action": itemgetter("action"),
    "by": lambda item: _party(item["actor"]),
    "to": lambda item: _party(item["object"]),
    "what": _what,
    "from": itemgetter("address"),
    "times": itemgetter("count"),
}


def _known_action(ctx: click.Context, param: click.Parameter, action: str | None) -> str | None:
    """Return a known action. Raises BadParameter with similar actions for any other."""
    from deskwire.engine.audit.actions import ACTIONS

    if action is None or action in ACTIONS:
        return action
    family = action.partition(".")[0]
    near = [name for name in ACTIONS if name.partition(".")[0] == family] or list(ACTIONS)
    raise click.BadParameter(f"There is no action {action!r}. There is {', '.join(near)}.", ctx, param)


def filter_options(command: CommandT) -> CommandT:
    """Add the options that filter records to a command."""
    for option in reversed(
        (
            click.option("--org", "organisation", help="Only records of this organisation (id or name)."),
            click.option(
                "--actor",
                help="Only records of this actor: a user (id or address), a key (id), operator or anonymous.",
            ),
            click.option(
                "--action", callback=_known_action, help="Only records of this action, such as key.created."
            ),
            click.option(
                "--object", "target", help="Only records about this object (an id, or a user's address)."
            ),
            click.option(
                "--since",
                metavar="TIME",
                help="Only records since this time (ISO 8601), or since 30m, 2h or 7d ago.",
            ),
            click.option("--until", metavar="TIME", help="Only records before this time."),
        )
    ):
        command = option(command)
    return command


@click.group("audit", cls=HelpGroup)
def audit() -> None:
    """Show the audit trail: each action with its actor, time and address."""


@audit.command(
    "list", examples=["deskwire audit list --since 7d", "deskwire audit list --action key.created --json"]
)
@filter_options
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="Show at most this many, the newest.",
)
@data_option
@json_option("one JSON object per line")
def list_records(limit: int, data: Path | None, as_json: bool, **chosen: str | None) -> None:
    """List records, newest first."""
    records = list(islice(_records(data, chosen, "before", None, min(limit, PAGE)), limit))
    if as_json:
        print_lines(records)
    else:
        show({"items": records}, as_json, COLUMNS)


@audit.command("export", examples=["deskwire audit export --org Acme > audit.ndjson"])
@filter_options
@data_option
def export(data: Path | None, **chosen: str | None) -> None:
    """Print all records, oldest first, one JSON object per line."""
    with shown_progress(beside=True) as tell:
        print_lines(_counted(_records(data, chosen, "after", 0, PAGE), tell))


def _counted(records: Iterator[dict[str, Any]], tell: ProgressReporter) -> Iterator[dict[str, Any]]:
    """Yield the records, and report their number as progress."""
    for number, record in enumerate(records, 1):
        if number % PAGE == 0:
            tell(f"Exporting: {number:,} records")
        yield record


def _records(
    data: Path | None, chosen: Mapping[str, str | None], direction: str, place: int | None, page: int
) -> Iterator[dict[str, Any]]:
    """Yield the records of all pages."""
    criteria: dict[str, Any] = {
        **chosen,
        "since": _time("--since", chosen["since"]),
        "until": _time("--until", chosen["until"]),
    }
    while True:
        result = query(data, "audit.list", limit=page, **criteria, **{direction: place})
        yield from result["items"]
        place = result["position"]
        if len(result["items"]) < page:
            return


def _time(option: str, text: str | None) -> int | None:
    from deskwire.commands.shell.times import time_of
    from deskwire.engine.core.clock import milliseconds

    time = time_of(option, text)
    return None if time is None else milliseconds(time)
