"""`deskwire audit`: who did what, in one organisation or in all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from deskwire.commands.admin.terminal import Columns, common_options, order, show

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
PAGE: Final = 500


def _party(party: Mapping[str, Any]) -> str:
    """Return an actor or object by the name that says most."""
    return str(party["name"] or party["id"] or party["type"])


def _what(record: Mapping[str, Any]) -> str:
    """Yield the changes and details, a line each."""
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


def filter_options(command: CommandT) -> CommandT:
    """Give a command the options that choose records."""
    for option in reversed(
        (
            click.option("--org", "organisation", help="Only records of this organisation (id or name)."),
            click.option(
                "--actor",
                help="Only records of this actor: a user (id or address), a key (id), operator or anonymous.",
            ),
            click.option("--action", help="Only records of this action, such as key.created."),
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


@click.group("audit")
def audit() -> None:
    """Show the audit trail: who did what, when and from where."""


@audit.command("list")
@filter_options
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="Show at most this many, the newest.",
)
@common_options
def list_records(limit: int, data: Path | None, as_json: bool, **chosen: str | None) -> None:
    """List records, newest first. With --json, print one JSON object per line."""
    records = list(islice(_records(data, chosen, "before", None, min(limit, PAGE)), limit))
    if as_json:
        _write(iter(records))
    else:
        show({"items": records}, as_json, COLUMNS)


@audit.command("export")
@filter_options
@click.option("--data", type=click.Path(path_type=Path), help="Data directory of the server (DESKWIRE_DATA).")
def export(data: Path | None, **chosen: str | None) -> None:
    """Print all records, oldest first, one JSON object per line."""
    _write(_records(data, chosen, "after", 0, PAGE))


def _records(
    data: Path | None, chosen: Mapping[str, str | None], direction: str, place: int | None, page: int
) -> Iterator[dict[str, Any]]:
    """Record after record, a page of them at a time."""
    arguments: dict[str, Any] = {
        "organisation": chosen["organisation"],
        "actor": chosen["actor"],
        "action": chosen["action"],
        "object": chosen["target"],
        "since": _time("--since", chosen["since"]),
        "until": _time("--until", chosen["until"]),
        "limit": page,
    }
    while True:
        arguments[direction] = place
        result = order(data, "audit.list", **arguments)
        yield from result["items"]
        place = result["position"]
        if len(result["items"]) < page:
            return


def _write(records: Iterator[dict[str, Any]]) -> None:
    for record in records:
        click.echo(json.dumps(record))


def _time(name: str, text: str | None) -> str | None:
    from deskwire.commands.deliveries.when import moment
    from deskwire.engine.core.clock import wall_clock

    try:
        return None if text is None else moment(text, wall_clock())
    except ValueError as error:
        raise click.UsageError(f"{name}: {error}.") from None
