"""Refusals as messages for the command line: they name options instead of the fields of a request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import click

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


class RefusedCommand(click.ClickException):
    """The error of a refused command or call; `code` is the reason."""

    def __init__(self, message: str, code: str | None) -> None:
        super().__init__(message)
        self.code = code


def as_options(problems: Iterable[str], fields: Mapping[str, str]) -> list[str]:
    """Return problems with the running command's options instead of JSON pointers (RFC 6901).

    Args:
        problems: such as `/ttlS: This must be at least 60.`
        fields: parameters by the names of fields, where they differ, such as `ttlS` for `ttl`.
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
