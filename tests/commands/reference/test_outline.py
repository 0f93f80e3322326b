"""The command line changes only together with its recorded outline."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest

from .outline import FILE, outline


def test_the_command_line_is_the_one_that_was_recorded() -> None:
    assert outline().splitlines() == FILE.read_text().splitlines(), (
        "If the command line is meant to change so, run `make docs`; outline.txt shows which parts have changed."
    )


def program(
    *,
    name: str = "send",
    help: str = "Send a message.",  # noqa: A002  # click's name for it
    option: str = "--to",
    meaning: str = "Where to.",
    default: str = "all",
    required: bool = False,
) -> click.Group:
    """Return a program with one command of one option."""
    given = click.Option([option], help=meaning, default=None if required else default, required=required)
    return click.Group(commands=[click.Command(name, help=help, params=[given])])


@pytest.mark.parametrize(
    "change",
    [
        lambda: program(name="post"),
        lambda: program(help="Send many messages."),
        lambda: program(option="--into"),
        lambda: program(meaning="A channel."),
        lambda: program(default="none"),
        lambda: program(required=True),
        lambda: click.Group(),
    ],
    ids=["command", "help", "option", "meaning", "default", "required", "removed"],
)
def test_each_change_of_a_command_or_option_changes_the_outline(change: Callable[[], click.Group]) -> None:
    assert outline(program()) == outline(program())
    assert outline(change()) != outline(program())
