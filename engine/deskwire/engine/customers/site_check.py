"""The check of a site: the obstacles to a channel's widget on a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from deskwire.engine.channels.channel import Channel
from deskwire.engine.channels.origin import Origin, parse_origin
from deskwire.engine.customers.csp import Use, blocking_directive, parse_policies
from deskwire.engine.customers.page_fetch import FetchedPage
from deskwire.engine.customers.page_tags import Attributes, meta_policies, script_tags
from deskwire.engine.customers.same_site import SameSite, same_site

FindingCode = Literal[
    "page_unreachable",
    "page_failed",
    "channel_disabled",
    "loader_missing",
    "loader_of_other_channel",
    "loader_of_other_service",
    "origin_missing",
    "page_not_https",
    "service_not_https",
    "csp_blocks_script",
    "csp_blocks_frame",
    "csp_blocks_connect",
    "coep_blocks_frame",
    "other_site",
]
Severity = Literal["error", "warning"]

_LOADER: Final = re.compile(r"/widget/(chn_[0-9A-Z]{26})\.js")
_EMBEDDER: Final = "cross-origin-embedder-policy"
_ISOLATED: Final = frozenset({"require-corp", "credentialless"})
_USES: Final[tuple[tuple[Use, FindingCode, Severity, str], ...]] = (
    ("script", "csp_blocks_script", "error", "so the loader is not loaded"),
    ("frame", "csp_blocks_frame", "error", "so the panel is not shown"),
    (
        "connect",
        "csp_blocks_connect",
        "warning",
        "which a user interface of your own needs; the panel does not",
    ),
)


class Finding(Struct, frozen=True):
    """The part of a page that needs a change. With an `error` the widget does not work."""

    code: FindingCode
    severity: Severity
    message: str


class SiteReport(Struct, frozen=True):
    """The result of a check.

    Args:
        url: of the page after its redirects; that which was asked for if it could not be fetched.
        status: of the page's response, None without one.
        same_site: whether the page and the service have the same registrable domain.
    """

    url: str
    status: int | None
    same_site: SameSite
    findings: tuple[Finding, ...]


def unreachable(url: str, reason: str, service: str) -> SiteReport:
    """Return the report on a page that could not be fetched."""
    finding = Finding("page_unreachable", "error", f"The page could not be fetched: {reason}.")
    return SiteReport(url, None, _same_site(url, service), (finding,))


def check_page(channel: Channel, page: FetchedPage, service: str) -> SiteReport:
    """Return the report on a page that is to show the channel's widget.

    Args:
        service: the address of this service that browsers use.
    """
    ours, site = _origin_of(service), _origin_of(page.url)
    if ours is None or site is None:
        return unreachable(page.url, "its address has no origin that browsers know", service)
    findings = tuple(_findings(channel, page, site, ours))
    return SiteReport(page.url, page.status, _same_site(page.url, service), findings)


def report_view(report: SiteReport) -> dict[str, Any]:
    """Return the report in the form of the API."""
    return {
        "url": report.url,
        "status": report.status,
        "ok": not any(each.severity == "error" for each in report.findings),
        "sameSite": report.same_site,
        "findings": [
            {"code": each.code, "severity": each.severity, "message": each.message}
            for each in report.findings
        ],
    }


def _findings(channel: Channel, page: FetchedPage, site: Origin, ours: Origin) -> Iterator[Finding]:
    if not 200 <= page.status < 300:
        yield Finding("page_failed", "error", f"The page answered with status {page.status}.")
    if not channel.enabled:
        yield Finding("channel_disabled", "error", "The channel is disabled: set `enabled` to true.")
    tags = script_tags(page.body)
    yield from _loader_findings(channel, page, ours, tags)
    if site != ours and not channel.allows_origin(site.text):
        yield Finding("origin_missing", "error", f"Add {site.text} to the channel's `origins`.")
    yield from _transport_findings(site, ours)
    yield from _policy_findings(channel, page, site, ours, tags)
    embedder = {value.partition(";")[0].strip().lower() for value in page.values(_EMBEDDER)}
    if embedder & _ISOLATED and site != ours:
        message = "The header Cross-Origin-Embedder-Policy blocks the panel's frame: remove it from pages with the widget."
        yield Finding("coep_blocks_frame", "error", message)
    if _same_site(site.text, ours.text) != "yes":
        message = (
            "Browsers that block third-party cookies give the panel no storage of its own, so the page keeps it. To avoid "
            "that, serve Deskwire from a name of the page's own site, as support.shop.example is for www.shop.example."
        )
        yield Finding("other_site", "warning", message)


def _loader_findings(
    channel: Channel, page: FetchedPage, ours: Origin, tags: list[Attributes]
) -> Iterator[Finding]:
    """Yield the finding about the loader's tag, none if it is there."""
    loaders = [
        (found[1], url) for url in _urls(page, tags) if (found := _LOADER.fullmatch(urlsplit(url).path))
    ]
    own = [url for name, url in loaders if name == channel.id]
    if any(_origin_of(url) == ours for url in own):
        return
    tag = f'<script async src="{ours.text}/widget/{channel.id}.js"></script>'
    if own:
        other = _origin_of(own[0])
        where = "another address" if other is None else other.text
        message = f"The loader comes from {where}, and this service is {ours.text}. If both are this service, all is well."
        yield Finding("loader_of_other_service", "warning", message)
    elif loaders:
        message = f"The page loads the channel {loaders[0][0]}. For this one it needs {tag}"
        yield Finding("loader_of_other_channel", "error", message)
    else:
        message = f"The page has no {tag} - if a script of the page adds it, all is well."
        yield Finding("loader_missing", "error", message)


def _transport_findings(site: Origin, ours: Origin) -> Iterator[Finding]:
    if site.scheme == "http" and not site.loopback:
        yield Finding("page_not_https", "error", "The page is served by http. The widget needs https.")
    if site.scheme == "https" and ours.scheme == "http" and not ours.loopback:
        message = (
            f"Browsers load nothing from {ours.text} into a page of https: serve Deskwire by https, and set "
            "DESKWIRE_PUBLIC_URL."
        )
        yield Finding("service_not_https", "error", message)


def _policy_findings(
    channel: Channel, page: FetchedPage, site: Origin, ours: Origin, tags: list[Attributes]
) -> Iterator[Finding]:
    """Yield a finding for each use that one of the page's policies blocks."""
    policies = parse_policies([*page.values("content-security-policy"), *meta_policies(page.body)])
    panel = f"{ours.text}/widget/{channel.id}"
    urls = {"script": f"{panel}.js", "frame": panel, "connect": f"{ours.text}/v3/customer/session"}
    nonces = [
        tag.get("nonce")
        for tag, url in zip(tags, _urls(page, tags), strict=True)
        if url.startswith(urls["script"])
    ]
    nonce = nonces[0] if nonces else None
    for use, code, severity, outcome in _USES:
        blocking = [
            name
            for each in policies
            if (name := blocking_directive(each, use, urls[use], site, nonce)) is not None
        ]
        if blocking:
            message = f"The page's Content-Security-Policy has no {ours.text} in {blocking[0]}, {outcome}."
            yield Finding(code, severity, message)


def _urls(page: FetchedPage, tags: list[Attributes]) -> list[str]:
    return [_joined(page.url, tag["src"].strip()) for tag in tags]


def _joined(base: str, url: str) -> str:
    try:
        return urljoin(base, url)
    except ValueError:  # an invalid address in brackets
        return ""


def _same_site(url: str, service: str) -> SameSite:
    site, ours = _origin_of(url), _origin_of(service)
    if site is None or ours is None:
        return "unknown"
    # Browsers compare the schemes, too (Schemeful Same-Site).
    return same_site(site.host, ours.host) if site.scheme == ours.scheme else "no"


def _origin_of(url: str) -> Origin | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parse_origin(f"{parts.scheme}://{parts.netloc}")
