"""Questions on the terminal: passwords and confirmations."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from deskwire.commands.shell.refusals import RefusedCommand

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def confirm(words: str, yes: bool) -> None:
    """Ask for confirmation; a refusal ends the program.

    Args:
        words: whole sentences about the consequences.
        yes: skip the question (`--yes`).

    Raises UsageError without a terminal.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{words} There is no terminal to confirm this: use --yes.")
    click.confirm(f"{words} Continue?", abort=True, err=True)


def new_password(from_stdin: bool, one_time: bool) -> str | None:
    """Return a password that is typed twice or read from stdin; None for a one-time password.

    A password is never a command-line argument, because other users of the machine can read arguments. Raises UsageError
    without a terminal.
    """
    if from_stdin and one_time:
        raise click.UsageError("--password-stdin and --one-time can't be used together.")
    if one_time:
        return None
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise click.UsageError(
            "There is no terminal to ask for a password: use --password-stdin or --one-time."
        )
    typed: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return typed


def confirm_new_password(refusal: RefusedCommand) -> None:
    """Ask whether another organisation's account gets a new password; a refusal ends the program."""
    if not sys.stdin.isatty():
        raise click.ClickException(
            f"{refusal.message} --yes gives it a new one-time password and ends its tokens; --keep-password leaves it "
            "as it is, if only the owner of the address knows it."
        )
    words = f"{refusal.message} It gets a new one-time password, and all its tokens end. Continue?"
    click.confirm(words, abort=True, err=True)


def password_options(command: CommandT) -> CommandT:
    """Add `--password-stdin` and `--one-time` to a command."""
    stdin = click.option("--password-stdin", is_flag=True, help="Read the password from a line on stdin.")
    once = click.option(
        "--one-time",
        is_flag=True,
        help="Generate a password and print it; it must be replaced at the first sign-in.",
    )
    return stdin(once(command))
