"""Options shared by commands, and the options of settings."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from deskwire.config.config import Config
from deskwire.config.parsers import Setting
from deskwire.config.settings import SETTINGS

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


class SettingOption(click.Option):
    """The option of a setting. Its help names the variable and the default, if any."""

    def __init__(self, *arguments: Any, setting: Setting, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._setting: Final = setting

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return the text in brackets after the help."""
        extra: dict[str, Any] = dict(super().get_help_extra(ctx))
        setting = self._setting
        extra["envvars"] = (setting.variable,)
        if setting.default not in (None, ()) and not _turns_off(setting):
            extra["default"] = setting.shown(setting.default)
        return extra


def _turns_off(setting: Setting) -> bool:
    return setting.option is not None and setting.default is True


def settings_options(command: CommandT) -> CommandT:
    """Add the option of every setting that has one to a command, as keywords by field name.

    The values stay strings, so that `Config.load` can report all problems together.
    """
    for each in reversed(tuple(SETTINGS.values())):
        if each.option is not None:
            command = _setting_option(each, each.option)(command)
    return command


def _setting_option(each: Setting, option: str) -> Callable[[CommandT], CommandT]:
    more: dict[str, Any] = {"metavar": each.metavar}
    if isinstance(each.default, bool):
        more = {"flag_value": "false" if each.default else "true"}
    return click.option(
        option,
        each.name,
        cls=SettingOption,
        setting=each,
        type=str,
        default=None,
        help=each.of_option,
        **more,
    )


_DATA: Final = SETTINGS["data_dir"]
data_option: Final = click.option(
    "--data",
    cls=SettingOption,
    setting=_DATA,
    type=click.Path(path_type=Path),
    metavar="DIRECTORY",
    help="Data directory of the server.",
)


def json_option(what: str) -> Callable[[CommandT], CommandT]:
    """Return a decorator that adds `--json`.

    Args:
        what: ends the sentence "Print …".
    """
    return click.option("--json", "as_json", is_flag=True, help=f"Print {what} for scripts.")


def common_options(command: CommandT) -> CommandT:
    """Add `--data` and `--json` to a command."""
    return data_option(json_option("JSON")(command))


def yes_option(what: str) -> Callable[[CommandT], CommandT]:
    """Return a decorator that adds `--yes`.

    Args:
        what: ends the sentence "… without asking."
    """
    return click.option("--yes", is_flag=True, help=f"{what} without asking.")


def installation_config(data: Path | None) -> Config:
    """Return the settings that locate the installation. Raises UsageError if they name two locations."""
    config = Config.load(os.environ, {"data_dir": data})
    if data is not None and config.database_url is not None:
        raise click.UsageError(
            "--data names a data directory, and DESKWIRE_DATABASE_URL a database: give only one of them."
        )
    return config
