"""The service's URL and key of a command: from options, variables, or the demo's file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from deskwire.config.parsers import http_url

if TYPE_CHECKING:
    import ssl

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

DEMO_FILE: Final = "demo.json"
_HOW: Final = "Give --url and --key (DESKWIRE_URL, DESKWIRE_KEY)"


@dataclass(frozen=True, slots=True)
class ServiceAccess:
    """The address of the service, and a key for it.

    Args:
        url: scheme, host and perhaps a path, without `/v3`.
        key: a server key; it is never shown.
        trust: verifies the service's certificate; None for the public authorities.
    """

    url: str
    key: str = field(repr=False)
    trust: ssl.SSLContext | None = field(default=None, repr=False)


cacert_option = click.option(
    "--cacert",
    envvar="DESKWIRE_CACERT",
    show_envvar=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="CA certificates (PEM) to verify the service's certificate with.",
)


def access_options(command: CommandT) -> CommandT:
    """Add `--url`, `--key`, `--cacert` and `--data` to a command, for `find_access`."""
    options = (
        click.option(
            "--url", envvar="DESKWIRE_URL", show_envvar=True, metavar="URL", help="Base URL of the service."
        ),
        click.option(
            "--key",
            envvar="DESKWIRE_KEY",
            show_envvar=True,
            metavar="sk_...",
            help="Server key of the project.",
        ),
        cacert_option,
        click.option(
            "--data",
            envvar="DESKWIRE_DATA",
            show_envvar=True,
            metavar="DIRECTORY",
            type=click.Path(path_type=Path),
            default="data",
            show_default=True,
            help="Data directory of a service on this machine; its demo.json is read if there is no --key.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def with_access(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `access_options` to a command, which receives the result as `access`."""

    @wraps(command)
    def run(
        *arguments: Any, url: str | None, key: str | None, data: Path, cacert: Path | None, **more: Any
    ) -> Any:
        return command(*arguments, access=find_access(url, key, data, cacert), **more)

    return access_options(run)


def find_access(url: str | None, key: str | None, data: Path, cacert: Path | None = None) -> ServiceAccess:
    """Return the given access, else the one in the `demo.json` of `data`.

    The file's key is sent only to the file's own address.

    Raises click.UsageError with advice if something is missing or unusable.
    """
    return replace(_found(url, key, data), trust=trust(cacert))


def trust(cacert: Path | None) -> ssl.SSLContext | None:
    """Return a TLS context that trusts these authorities; None without a file. Raises click.UsageError."""
    import ssl

    try:
        return None if cacert is None else ssl.create_default_context(cafile=cacert)
    except OSError as error:  # ssl.SSLError is a subclass
        raise click.UsageError(
            f"--cacert (DESKWIRE_CACERT): {cacert} has no certificates in PEM form."
        ) from error


def _found(url: str | None, key: str | None, data: Path) -> ServiceAccess:
    given = None if url is None else base_url(url)
    if given is not None and key is not None:
        return ServiceAccess(given, _usable(key))
    path = data / DEMO_FILE
    known = _read_demo(path)
    if known is None:
        raise click.UsageError(
            f"{_HOW}, or --data with the data directory of the demo: {path} does not exist."
        )
    if key is not None:
        return ServiceAccess(known.url, _usable(key))
    if given is not None and given != known.url:
        raise click.UsageError(f"{_HOW}: the key in {path} is for {known.url}, not for {given}.")
    return known


def base_url(url: str) -> str:
    """Return the URL without a final slash or `/v3`. Raises click.UsageError if it is not a URL."""
    try:
        return http_url(url).removesuffix("/v3")
    except ValueError as error:
        raise click.UsageError(f"--url {error}.") from None


def _usable(key: str) -> str:
    if not key.isascii() or not key.isprintable() or " " in key:
        raise click.UsageError(
            "--key (DESKWIRE_KEY) is not a server key: it has blanks or other odd characters."
        )
    return key


def _read_demo(path: Path) -> ServiceAccess | None:
    import orjson

    try:
        document = orjson.loads(path.read_bytes())
        return ServiceAccess(base_url(document["baseUrl"]), _usable(document["serverKey"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise click.UsageError(f"{_HOW}: {path} can't be used ({type(error).__name__}).") from error
