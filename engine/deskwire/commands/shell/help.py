"""The help of commands: whole summaries, headings, and examples at the end.

The program's main command has the names and summaries of all commands without importing them. A test compares both.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import click
from click.exceptions import NoSuchCommand
from click.shell_completion import CompletionItem
from msgspec import Struct

_WHOLE: Final = sys.maxsize  # the length limit of a summary, which is never truncated


class HelpCommand(click.Command):
    """A command whose help ends with examples.

    Args:
        examples: command lines.
    """

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.examples: Final = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples after the options."""
        write_examples(formatter, self.examples)
        super().format_epilog(ctx, formatter)


class HelpGroup(click.Group):
    """A group of `HelpCommand`, with their whole summaries."""

    command_class = HelpCommand

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the summary of each command, on one line or several."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(self.commands[name])) for name in self.list_commands(ctx)])


class LazyCommand(Struct, frozen=True):
    """A command that is imported on use.

    Args:
        place: `module:name`.
        summary: the first sentence of its help.
    """

    place: str
    summary: str

    def load(self) -> click.Command:
        """Import the module and return the command."""
        module, _, name = self.place.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command


class Program(click.Group):
    """The main command, with its commands under headings and imported on use.

    Args:
        sections: commands by name, by heading.
    """

    def __init__(
        self, *arguments: Any, sections: Mapping[str, Mapping[str, LazyCommand]], **more: Any
    ) -> None:
        super().__init__(*arguments, **more)
        self.sections: Final = sections
        self._known: Final = {name: each for section in sections.values() for name, each in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands in the order of the help."""
        return list(self._known)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name."""
        known = self._known.get(cmd_name)
        return None if known is None else known.load()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name. Raises NoSuchCommand with names that are similar."""
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            raise NoSuchCommand(error.command_name, possibilities=self._known, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings, without importing them."""
        widest = max(map(len, self._known))
        for heading, section in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{widest}}", each.summary) for name, each in section.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands with this prefix, without importing them."""
        commands = [
            CompletionItem(name, help=each.summary)
            for name, each in self._known.items()
            if name.startswith(incomplete)
        ]
        options = click.Command.shell_complete(self, ctx, incomplete) if incomplete.startswith("-") else []
        return [*commands, *options]


def summary(command: click.Command) -> str:
    """Return the first sentence of a command's help without the full stop."""
    return command.get_short_help_str(_WHOLE).removesuffix(".")


def write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    """Write the example command lines."""
    if examples:
        with formatter.section("Examples"):
            for each in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{each}\n")


def all_commands(
    program: click.Group, ctx: click.Context, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield each command of a group with its full name, a group before its commands."""
    for name in program.list_commands(ctx):
        command = program.get_command(ctx, name)
        assert command is not None, name
        words = (*path, name)
        yield words, command
        if isinstance(command, click.Group):
            yield from all_commands(command, click.Context(command, ctx, name), words)
