"""The parts of Content-Security-Policy that decide whether a page may load the widget (CSP 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal
from urllib.parse import urlsplit

from deskwire.engine.channels.origin import DEFAULT_PORTS, Origin, parse_origin

Use = Literal["script", "frame", "connect"]

# The directives of each use: the first one that a policy has decides (CSP 3, section 6.8.3).
DIRECTIVES: Final[Mapping[Use, tuple[str, ...]]] = {
    "script": ("script-src-elem", "script-src", "default-src"),
    "frame": ("frame-src", "child-src", "default-src"),
    "connect": ("connect-src", "default-src"),
}
_ANY_PORT: Final = "*"

Policy = Mapping[str, tuple[str, ...]]


def parse_policies(values: Sequence[str]) -> list[Policy]:
    """Return the policies of header values or `meta` contents. A page must satisfy each of them."""
    return [_policy(text) for value in values for text in value.split(",") if text.strip()]


def blocking_directive(
    policy: Policy, use: Use, url: str, page: Origin, nonce: str | None = None
) -> str | None:
    """Return the directive that keeps a page from loading a URL; None if the policy allows it.

    Args:
        page: the origin of the page, which is `'self'`.
        nonce: that of the script's tag.
    """
    name = next((name for name in DIRECTIVES[use] if name in policy), None)
    if name is None:
        return None
    sources = policy[name]
    if use == "script" and nonce and f"'nonce-{nonce}'" in sources:
        return None
    # Scripts that a trusted script adds are allowed then, but a tag in the page needs the nonce.
    if use == "script" and "'strict-dynamic'" in sources:
        return name
    return None if any(_matches(source, url, page) for source in sources) else name


def _policy(text: str) -> Policy:
    """Parse one policy. Of a repeated directive the first one counts."""
    directives: dict[str, tuple[str, ...]] = {}
    for part in text.split(";"):
        name, *sources = part.split() or [""]
        directives.setdefault(name.lower(), tuple(sources))
    directives.pop("", None)
    return directives


def _matches(source: str, url: str, page: Origin) -> bool:
    """Return whether a source expression matches a URL (CSP 3, section 6.7.2.8)."""
    origin, path = _split(url)
    if origin is None:
        return False
    lowered = source.lower()
    if lowered == "'self'":
        return page == origin
    if lowered.startswith("'"):
        return False
    if lowered == "*":
        return True
    if lowered.endswith(":") and "/" not in lowered:
        return lowered[:-1] == origin.scheme or (lowered == "http:" and origin.scheme == "https")
    return _matches_host(source, origin, path, page)


def _matches_host(source: str, origin: Origin, path: str, page: Origin) -> bool:
    scheme, separator, rest = source.partition("://")
    if not separator:
        scheme, rest = page.scheme, source
    authority, slash, wanted_path = rest.partition("/")
    host, _, port = authority.lower().partition(":")
    scheme = scheme.lower()
    if scheme != origin.scheme and not (scheme == "http" and origin.scheme == "https"):
        return False
    if host.startswith("*."):
        if not origin.host.endswith(host[1:]):
            return False
    elif host not in ("*", origin.host):
        return False
    if port != _ANY_PORT and (port or str(DEFAULT_PORTS[origin.scheme])) != str(origin.port):
        return False
    wanted = f"{slash}{wanted_path}"
    if not slash or wanted == "/":
        return True
    return path.startswith(wanted) if wanted.endswith("/") else path == wanted


def _split(url: str) -> tuple[Origin | None, str]:
    parts = urlsplit(url)
    return parse_origin(f"{parts.scheme}://{parts.netloc}"), parts.path
