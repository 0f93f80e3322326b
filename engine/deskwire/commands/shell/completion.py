"""`deskwire completion`: scripts with which shells complete commands and options."""

from __future__ import annotations

from typing import Final

import click

from deskwire.commands.shell.help import HelpCommand

SHELLS: Final = ("bash", "zsh", "fish")
VARIABLE: Final = "_DESKWIRE_COMPLETE"  # set by the script to ask the program for completions


@click.command(
    "completion",
    cls=HelpCommand,
    examples=[
        'eval "$(deskwire completion bash)"',
        "deskwire completion zsh > ~/.zfunc/_deskwire",
        "deskwire completion fish > ~/.config/fish/completions/deskwire.fish",
    ],
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands in a shell.

    Load it when the shell starts: `eval "$(deskwire completion bash)"` in ~/.bashrc, a file of the function path for zsh, or a file
    in fish's completions. Bash must be version 4.4 or newer.
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None, shell
    click.echo(script(ctx.find_root().command, {}, "deskwire", VARIABLE).source())
