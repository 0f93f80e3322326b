"""The outline of the command line: a line for each command, argument and option, with a digest of its help and default.

`make docs` writes it to the file beside it. A change of that file shows which parts of the command line a change of the
code touches; one that only moves or renames something in the code touches none.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import click

from deskwire.cli import cli
from deskwire.commands.reference.cli import INTRODUCTION, STATUSES
from deskwire.commands.shell.help import HelpCommand, all_commands

FILE: Final = Path(__file__).with_name("outline.txt")
_DIGITS: Final = 16


def outline(program: click.Group = cli) -> str:
    """Return the lines for all commands of `program`."""
    return "".join(f"{line}\n" for line in _lines(program))


def _lines(program: click.Group) -> Iterator[str]:
    yield f"introduction {_digest(INTRODUCTION, STATUSES)}"
    for words, command in all_commands(program, click.Context(program)):
        name = " ".join(words)
        examples = command.examples if isinstance(command, HelpCommand) else ()
        yield f"{name} {_digest(command.help or '', *examples)}"
        for each in command.params:
            yield f"{name} {_parameter(each, click.Context(command, show_default=True))}"


def _parameter(parameter: click.Parameter, ctx: click.Context) -> str:
    names = "/".join((*parameter.opts, *parameter.secondary_opts))
    needed = "required" if parameter.required else "optional"
    if not isinstance(parameter, click.Option):
        return f"{names} {parameter.make_metavar(ctx)} {needed} {_digest(str(parameter.nargs))}"
    value = "-" if parameter.is_flag else parameter.make_metavar(ctx)
    shown = sorted(parameter.get_help_extra(ctx).items())
    return f"{names} {value} {needed} {_digest(parameter.help or '', str(parameter.multiple), str(shown))}"


def _digest(*content: str) -> str:
    return sha256("\0".join(content).encode()).hexdigest()[:_DIGITS]


if __name__ == "__main__":
    FILE.write_text(outline())
