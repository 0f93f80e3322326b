"""Parsing and validation of webhook URLs (contract 6.2.2, decisions 6).

Registration and requests use the same parser. Two parsers could disagree about the host of a crafted URL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Self

import httpx
import trio
from msgspec import Struct

from deskwire.engine.core.errors import Problem, Unavailable
from deskwire.engine.webhooks.http.address import AddressPolicy, ResolutionFailed, Resolver, parse_address

# Characters. Our choice: the common limit of proxies and logs (ADR 6).
URL_LENGTH_MAX: Final = 2048

_PORT_MIN: Final = 1024
_PORT_MAX: Final = 65535
_HTTP_PORT: Final = 80
_HTTPS_PORT: Final = 443
_RESOLVE_TIMEOUT_S: Final = 5.0
_HOST_LENGTH_MAX: Final = 254
_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_A_LABEL: Final = "xn--"
_HOW_TO_ALLOW: Final = (
    "The service's operator can allow it: a network by DESKWIRE_WEBHOOK_ALLOW,"
    " everything, for development, by --allow-private-webhooks."
)


class WebhookUrl(Struct, frozen=True):
    """A webhook's URL, split into the parts of a request.

    Args:
        host: ASCII, without brackets, as names are resolved and as certificates name hosts.
        authority: the `Host` header.
        path: with the query.
    """

    tls: bool
    host: str
    port: int
    authority: bytes
    path: bytes

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse a URL that `url_problems` has accepted."""
        parsed = httpx.URL(url)
        tls = parsed.scheme == "https"
        return cls(tls, host_of(parsed), port_of(parsed), parsed.netloc, parsed.raw_path)


def url_problems(url: str, policy: AddressPolicy) -> tuple[Problem, ...]:
    """Return the problems with the form of `url`, or an empty tuple."""
    return tuple(Problem("/url", code, message) for code, message in _url_flaws(url, policy))


async def check_url(url: str, policy: AddressPolicy, resolver: Resolver) -> tuple[Problem, ...]:
    """Return the problems with `url` and with the addresses that its host has now.

    Raises Unavailable if this machine lacks a thread, memory or file descriptor for the lookup.
    """
    problems = url_problems(url, policy)
    if problems:
        return problems
    parsed = httpx.URL(url)
    with trio.move_on_after(_RESOLVE_TIMEOUT_S) as scope:
        try:
            addresses = await resolver(host_of(parsed), port_of(parsed))
        except ResolutionFailed as failure:
            return (Problem("/url", "url_host_unknown", f"The {failure}."),)
        except OSError as shortage:
            raise Unavailable(
                f"The URL's host can't be resolved now: {shortage}.", code="overloaded"
            ) from shortage
    if scope.cancelled_caught:
        return (
            Problem(
                "/url", "url_host_unknown", f"The host was not resolved within {_RESOLVE_TIMEOUT_S:g} s."
            ),
        )
    refusals = [reason for address in addresses if (reason := policy.refusal(address)) is not None]
    return tuple(
        Problem("/url", "url_address_refused", f"The URL must be public: {reason}. {_HOW_TO_ALLOW}")
        for reason in refusals
    )


def host_of(url: httpx.URL) -> str:
    """Return the host as it is resolved: ASCII, without brackets."""
    return url.raw_host.decode("ascii")


def port_of(url: httpx.URL) -> int:
    """Return the port, explicit or implied by the scheme."""
    return url.port or (_HTTP_PORT if url.scheme == "http" else _HTTPS_PORT)


def _url_flaws(url: str, policy: AddressPolicy) -> Iterator[tuple[str, str]]:
    if len(url) > URL_LENGTH_MAX:
        yield "url_too_long", f"The URL has {len(url)} characters; at most {URL_LENGTH_MAX} are allowed."
    if any(not character.isprintable() or character.isspace() for character in url):
        yield "url_characters", "The URL contains whitespace or control characters."
        return
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        yield "url_malformed", f"The URL can't be read: {error}."
        return
    if parsed.scheme not in (("https", "http") if policy.allow_private else ("https",)):
        yield (
            "url_not_https",
            "The URL must begin with https://. For development, --allow-private-webhooks lets the service take http://.",
        )
    yield from _authority_flaws(url, parsed)
    if "#" in url:
        yield "url_fragment", "The URL must not have a fragment (#)."


def _authority_flaws(url: str, parsed: httpx.URL) -> Iterator[tuple[str, str]]:
    if "@" in _authority(url):
        yield "url_user_info", "The URL must not contain a user name or password."
    if "\\" in _authority(url) or (parsed.raw_host and not _valid_host(host_of(parsed))):
        yield "url_host_invalid", "The URL's host is no valid name or address."
    if not parsed.raw_host:  # `host` raises on a broken A-label
        yield "url_no_host", "The URL has no host."
    port = _HTTPS_PORT if parsed.port is None else parsed.port  # httpx also gives None for port 80 of http
    if port != _HTTPS_PORT and not _PORT_MIN <= port <= _PORT_MAX:
        yield "url_port", f"The port must be {_HTTPS_PORT} or between {_PORT_MIN} and {_PORT_MAX}."


def _authority(url: str) -> str:
    rest = url.partition("//")[2]
    ends = [at for at in map(rest.find, "/?#") if at >= 0]
    return rest[: min(ends, default=len(rest))]


def _valid_host(host: str) -> bool:
    """Return whether `host` is an address or a host name.

    A name may end with a dot (RFC 1034).
    """
    if parse_address(host) is not None:
        return True
    return len(host) <= _HOST_LENGTH_MAX and all(map(_valid_label, host.removesuffix(".").split(".")))


def _valid_label(label: str) -> bool:
    """Return whether a label of a host name is valid.

    Underscores are allowed because real hosts use them. An A-label must be Punycode.
    """
    if not _LABEL.fullmatch(label):
        return False
    if not label.startswith(_A_LABEL):
        return True
    try:
        return bool(label.removeprefix(_A_LABEL).encode().decode("punycode"))
    except UnicodeError:
        return False
