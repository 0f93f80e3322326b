"""`deskwire completion`: the script by which a shell completes commands and options."""

from __future__ import annotations

from typing import Final

import click

from deskwire.commands.shell.help import HelpCommand

SHELLS: Final = ("bash", "zsh", "fish")
VARIABLE: Final = "_DESKWIRE_COMPLETE"
"""What the script sets when it asks the program for completions."""


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

    Have the shell read it at its start: `eval "$(deskwire completion bash)"` in ~/.bashrc, a file of the function path for zsh, or a file
    in the completions of fish. Bash has to be version 4.4 or newer.
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None, shell
    click.echo(script(ctx.find_root().command, {}, "deskwire", VARIABLE).source())
