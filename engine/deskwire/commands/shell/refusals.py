"""The words of a refusal as whoever typed the command knows them: an option where the order has a field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import click

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


class RefusedCommand(click.ClickException):
    """The error that ends a command whose order or call was refused; `code` is the reason."""

    def __init__(self, message: str, code: str | None) -> None:
        super().__init__(message)
        self.code = code


def as_options(problems: Iterable[str], fields: Mapping[str, str]) -> list[str]:
    """Return problems with the options of the command that runs in the place of JSON pointers (RFC 6901).

    Args:
        problems: such as `/ttlS: This must be at least 60.`
        fields: parameters of the command by the fields that have another name, such as `ttlS` for `ttl`.
    """
    ctx = click.get_current_context(silent=True)
    params = {} if ctx is None else {each.name: each for each in ctx.command.params}
    return [_as_option(each, fields, params) for each in problems]


def _as_option(problem: str, fields: Mapping[str, str], params: Mapping[str, click.Parameter]) -> str:
    pointer, colon, message = problem.partition(": ")
    if not colon or not pointer.startswith("/"):
        return problem
    names = pointer[1:].split("/")
    nth = ""
    for name in reversed(names):
        if name.isdecimal():
            nth = f" (number {int(name) + 1})"
            continue
        param = params.get(fields.get(name, _CAMEL.sub(r"_\1", name).lower()))
        if param is not None:
            return f"{_label(param)}{nth}: {message}"
    return f"{'.'.join(names)}: {message}"


def _label(param: click.Parameter) -> str:
    return max(param.opts, key=len) if isinstance(param, click.Option) else param.human_readable_name
