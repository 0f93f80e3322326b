"""The settings as a table for people, as JSON for scripts, and as a reference page."""

from collections.abc import Mapping
from typing import Final

from rich.table import Table
from rich.text import Text

from deskwire.commands.reference.tables import markdown_table
from deskwire.config.environment import CLIENT_VARIABLES
from deskwire.config.parsers import Setting
from deskwire.config.settings import SETTINGS, Config

INTRODUCTION: Final = """\
# Settings

<!-- Written by `make docs` from the table of settings; do not edit. -->

Each setting is an environment variable; some are options of `deskwire serve` as well. An option beats the
environment, which beats the default. An empty variable counts as not set. A value that cannot be used, an unknown
`DESKWIRE_` variable and settings that contradict each other stop the start with one message that names them all.

Units are the endings of the names: `_s` seconds, `_bytes` bytes, `_kib` units of 1,024 bytes. Flags take `true` or
`false`, lists take commas. `deskwire config` shows the values that hold and where each comes from.
"""

CLIENT_HEAD: Final = """
## Variables of other commands

No settings of the server, which leaves them alone; each is an option of those commands, too.

"""


def table(config: Config) -> Table:
    """Return the settings of `config` for a terminal: name, variable, value, origin, meaning."""
    listing = Table("Setting", "Variable", "Value", "Origin", "Meaning", title="Deskwire settings")
    for each in SETTINGS.values():
        value = Text(_value(each, config))  # not str, in which rich would look for markup
        listing.add_row(each.name, each.variable, value, config.origin[each.name], each.meaning)
    return listing


def client_table() -> Table:
    """Return the variables that the server does not use, for a terminal: name and meaning."""
    listing = Table("Variable", "Meaning", title="Variables of other commands")
    for variable, meaning in CLIENT_VARIABLES.items():
        listing.add_row(variable, meaning)
    return listing


def document(config: Config) -> list[Mapping[str, object]]:
    """Return the settings of `config` for scripts, in the types of JSON; a secret is only `set` or null."""
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
    """Return the reference page: every setting with its default, whatever its value is here."""
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
