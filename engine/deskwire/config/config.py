"""The settings that a program runs with, read once from the command line and the environment.

An option beats the environment, which beats the default. An empty variable counts as not set. Nothing else in the
program reads the environment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Self

import click

from deskwire.config.conflicts import contradictions
from deskwire.config.environment import unknown
from deskwire.config.oidc import SHORT_NAME, OidcProvider, is_named, named_values, provider_problems
from deskwire.config.parsers import Origin, source_of
from deskwire.config.settings import SETTINGS, VARIABLES, Settings

OIDC: Final = tuple(name for name in SETTINGS if name.startswith("oidc_"))


class ConfigError(click.ClickException):
    """Invalid settings; the message has one line for each problem."""

    exit_code = 2

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("These settings cannot be used:\n" + "\n".join(f"  {each}" for each in problems))
        self.problems: Final = problems


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """The value of every setting; `Config()` has the defaults and does not read the environment.

    Only `load` checks values; a test may build or `replace` any.
    """

    @classmethod
    def load(cls, environ: Mapping[str, str], options: Mapping[str, object]) -> Self:
        """Return the settings from the environment and the command line.

        Args:
            environ: variables, of which only those that start with `DESKWIRE_` are looked at.
            options: values from the command line by field name; None means not given.

        Raises:
            ConfigError: with every value that cannot be used, every unknown variable and every contradiction.
            TypeError: an option that is not a setting, which is a mistake of the caller.
        """
        if strange := options.keys() - SETTINGS.keys():
            raise TypeError(f"not a setting: {', '.join(sorted(strange))}")
        values: dict[str, Any] = {}
        origin: dict[str, Origin] = {}
        bad: dict[str, str] = {}
        for each in SETTINGS.values():
            source, label, text = source_of(each, environ, options)
            origin[each.name] = source
            try:
                if text is not None:
                    values[each.name] = each.parse(text)
            except ValueError as error:
                bad[each.name] = f"{label} {error}"
        providers, bad_named = named_values(environ)
        short = {each.removeprefix("oidc_"): values.get(each) for each in OIDC if origin[each] != "default"}
        clashes = [
            sentence
            for name, given in (*([(SHORT_NAME, short)] if short else []), *providers.items())
            for sentence in provider_problems(name, given)
        ]
        named = (
            ()
            if clashes or bad_named
            else tuple(OidcProvider(name=name, **given) for name, given in providers.items())
        )
        config = cls(**values, oidc_named=named, origin=MappingProxyType(origin))
        clashes += [
            sentence for names, sentence in contradictions(config, SETTINGS) if not names & bad.keys()
        ]
        known = VARIABLES | {each for each in environ if is_named(each)}
        if problems := (*unknown(environ, known), *bad.values(), *bad_named, *clashes):
            raise ConfigError(problems)
        return config
