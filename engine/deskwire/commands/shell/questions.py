"""The questions that commands ask on a terminal: passwords, and whether something that can't be undone is meant."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from deskwire.commands.shell.refusals import RefusedCommand

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def confirm(words: str, yes: bool) -> None:
    """Ask whether that is meant; ends the command if not.

    Args:
        words: what is going to happen, whole sentences.
        yes: whether it was answered beforehand, by `--yes`.

    Raises UsageError if there is nobody to ask.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{words} There is no terminal to ask on whether that is meant: use --yes.")
    click.confirm(f"{words} Go on?", abort=True, err=True)


def new_password(from_stdin: bool, one_time: bool) -> str | None:
    """Return the password that is typed twice, or comes as a line on stdin; None for a one-time password.

    A password never stands among the arguments, which everybody on the machine can read. Raises UsageError
    if there is nobody to ask.
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
    """Ask whether an account of another organisation gets a new password; ends the command if not, or with no terminal."""
    if not sys.stdin.isatty():
        raise click.ClickException(
            f"{refusal.message} --yes gives it a new one-time password and ends its tokens; --keep-password leaves it "
            "as it is, if you know that nobody but the owner of the address knows it."
        )
    words = f"{refusal.message} It gets a new one-time password, and all its tokens end. Go on?"
    click.confirm(words, abort=True, err=True)


def password_options(command: CommandT) -> CommandT:
    """Give a command `--password-stdin` and `--one-time`."""
    stdin = click.option("--password-stdin", is_flag=True, help="Read the password from a line on stdin.")
    once = click.option(
        "--one-time",
        is_flag=True,
        help="Generate a password and print it; it must be replaced at the first sign-in.",
    )
    return stdin(once(command))
