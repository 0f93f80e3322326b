"""The settings as text, as JSON, and as a reference page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Final

from deskwire.config.config import Config
from deskwire.config.environment import CLIENT_VARIABLES
from deskwire.config.parsers import Setting
from deskwire.config.settings import SETTINGS
from deskwire.http.description.tables import markdown_table

_WIDTH: Final = 79
_INDENT: Final = " " * 4

INTRODUCTION: Final = """\
# Settings

<!-- Written by `make docs` from the table of settings; do not edit. -->

Each setting is an environment variable; some are also options of `deskwire serve`. An option overrides the
environment, which overrides the default. An empty variable counts as not set. An invalid value, an unknown
`DESKWIRE_` variable and contradictory settings stop the start with one message that names them all.

The ending of a name is its unit: `_s` seconds, `_bytes` bytes, `_kib` units of 1,024 bytes. Flags take `true` or
`false`, lists take commas. `deskwire config` shows the current values and their origin.
"""

CLIENT_HEAD: Final = """
## Variables of other commands

These are not settings of the server, which ignores them; each is also an option of those commands.

"""


def lines(config: Config) -> Iterator[str]:
    """Yield the settings for a terminal: variable, value and origin on a line, and the meaning below it."""
    for each in SETTINGS.values():
        yield f"{each.variable} = {_value(each, config)}  ({config.origin[each.name]})"
        option = f" Option: {each.option}." if each.option else ""
        yield from _below(f"{each.meaning}{option}")
    yield "Variables of other commands:"
    for variable, meaning in CLIENT_VARIABLES.items():
        yield variable
        yield from _below(meaning)


def _below(text: str) -> Iterator[str]:
    """Yield a text wrapped to a terminal's usual width, followed by an empty line."""
    yield textwrap.fill(text, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)
    yield ""


def document(config: Config) -> list[Mapping[str, object]]:
    """Return the settings as JSON types; a secret is only `set` or null."""
    return [
        {
            "name": each.name,
            "variable": each.variable,
            "option": each.option,
            "value": _plain(each, getattr(config, each.name)),
            "origin": config.origin[each.name],
            "meaning": each.meaning,
        }
        for each in SETTINGS.values()
    ]


def markdown() -> str:
    """Return the reference page with the default of every setting."""
    heads = ("Variable", "Option", "Default", "Meaning")
    settings = markdown_table(heads, map(_cells, SETTINGS.values()))
    clients = ((f"`{variable}`", meaning) for variable, meaning in CLIENT_VARIABLES.items())
    return f"{INTRODUCTION}\n{settings}{CLIENT_HEAD}{markdown_table(('Variable', 'Meaning'), clients)}"


def _cells(each: Setting) -> tuple[str, str, str, str]:
    default = f"`{each.shown(each.default)}`" if each.default not in (None, ()) else "unset"
    option = f"`{each.option}`" if each.option else ""
    return f"`{each.variable}`", option, default, each.meaning


def _value(each: Setting, config: Config) -> str:
    return each.shown(getattr(config, each.name)) or "unset"


def _plain(each: Setting, value: object) -> object:
    match value:
        case None:
            return None
        case _ if each.secret:
            return each.shown(value)
        case bool() | int() | float() | str():
            return value
        case tuple():
            return [_plain(each, item) for item in value]
        case _:
            return str(value)
