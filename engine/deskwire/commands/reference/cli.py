"""The reference page of commands, from the commands themselves."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from inspect import cleandoc
from typing import Any, Final

import click

from deskwire.cli import SECTIONS, cli
from deskwire.commands.shell.help import HelpCommand, all_commands
from deskwire.http.description.tables import markdown_table

INTRODUCTION: Final = """\
# Commands

<!-- Written by `deskwire reference cli` from the commands. -->

`deskwire COMMAND --help` shows the same in a terminal. Options that name a variable default to its value;
every command also takes `-h` and `--help`.

Standard output has only the result; messages, errors and progress go to standard error. Progress
is shown on a terminal only; `convert` also prints it in a pipe, every five seconds. Commands that list records print a table, or JSON with `--json`: one array, or for long
lists such as logs one object per line. Every date is ISO 8601 in UTC.
"""

STATUSES: Final = """
## Exit status

| Status | Meaning |
| --- | --- |
| 0 | The command succeeded. |
| 1 | It was refused or failed, a check found problems, or a question was answered with no; standard error has the reason. |
| 2 | The command line or the settings are invalid; nothing was done. |

## Reading and changing

Commands that only read (`list`, `show`, `audit`, `check`) open the database read-only, with or without a running server. They create
no file, and leave a database of another version unchanged: they name its version and how to update it. Commands that
change data are executed by the running server if there is one; without a server they change the data themselves, after
updating the database. A command that deletes permanently asks for confirmation on a terminal, and elsewhere needs `--yes`.

## Completion

`deskwire completion` prints a script with which a shell completes commands and options:

```sh
echo 'eval "$(deskwire completion bash)"' >> ~/.bashrc                             # bash 4.4 or newer
deskwire completion zsh > ~/.zfunc/_deskwire                                       # zsh, with ~/.zfunc in fpath
deskwire completion fish > ~/.config/fish/completions/deskwire.fish                # fish
```
"""


def markdown() -> str:
    """Return the page."""
    return f"{INTRODUCTION}{STATUSES}\n" + "\n".join(_sections())


def _sections() -> Iterator[str]:
    ctx = click.Context(cli, info_name="deskwire", show_default=True, help_option_names=["-h", "--help"])
    commands = list(all_commands(cli, ctx))
    for heading, section in SECTIONS.items():
        yield f"## {heading}\n"
        for words, command in commands:
            if words[0] in section:
                yield from _section(("deskwire", *words), command)


def _section(words: Sequence[str], command: click.Command) -> Iterator[str]:
    ctx = click.Context(command, info_name=" ".join(words), show_default=True)
    yield f"### `{' '.join(words)}`\n"
    yield f"{_text(command)}\n"
    if isinstance(command, click.Group):
        return
    usage = " ".join(command.collect_usage_pieces(ctx))
    yield f"```text\n{' '.join(words)} {usage}\n```\n"
    options = [each for each in command.params if isinstance(each, click.Option)]
    if options:
        yield markdown_table(
            ("Option", "Variable", "Default", "Meaning"), [_row(each, ctx) for each in options]
        )
    if isinstance(command, HelpCommand) and command.examples:
        yield "```text\n" + "\n".join(command.examples) + "\n```\n"


def _text(command: click.Command) -> str:
    """Return a command's help with one line per paragraph."""
    paragraphs = cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(textwrap.fill(paragraph, 10_000) for paragraph in paragraphs)


def _row(option: click.Option, ctx: click.Context) -> tuple[str, str, str, str]:
    extra: dict[str, Any] = dict(option.get_help_extra(ctx))
    names = ", ".join(f"`{each}`" for each in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" `{option.make_metavar(ctx)}`"
    variable = ", ".join(f"`{each}`" for each in extra.get("envvars", ()))
    default = "required" if option.required else f"`{extra['default']}`" if "default" in extra else ""
    return f"{names}{value}", variable, default, option.help or ""
