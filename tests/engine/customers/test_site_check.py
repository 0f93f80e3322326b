"""The check of a site: each obstacle on a page is named, and a page without one is not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.channels.channel import Channel, new_channel
from deskwire.engine.channels.origin import parse_origin
from deskwire.engine.core.values import replace
from deskwire.engine.customers.csp import blocking_directive, parse_policies
from deskwire.engine.customers.page_fetch import PAGE_BYTES_MAX, FetchedPage
from deskwire.engine.customers.page_tags import meta_policies, script_tags
from deskwire.engine.customers.same_site import SameSite, same_site
from deskwire.engine.customers.site_check import check_page

OURS = "https://support.shop.example"
ID = "chn_01KZ00000000000000000CHAN1"
LOADER = f'<script async src="{OURS}/widget/{ID}.js"></script>'
CHANNEL = replace(
    new_channel(ID, 1, "Shop", b"", "", 0), origins=("https://www.shop.example", "http://localhost")
)


def codes(
    html: str = LOADER,
    url: str = "https://www.shop.example/help",
    channel: Channel = CHANNEL,
    service: str = OURS,
    status: int = 200,
    **headers: str,
) -> list[str]:
    """Return the codes of the findings on a page; `_` stands for `-` in names of headers."""
    fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
    report = check_page(channel, FetchedPage(url, status, fields, html), service)
    return [each.code for each in report.findings]


@pytest.mark.parametrize(
    "html",
    [
        LOADER,
        f"<!doctype html><html><body>text{LOADER}</body></html>",
        f"<SCRIPT\n  SRC='{OURS}/widget/{ID}.js?lang=de'\n defer></SCRIPT>",
        f"<script src={OURS}/widget/{ID}.js></script>",
        f'<script src="https&#58;//support.shop.example/widget/{ID}.js"></script>',
        f'<script src="//support.shop.example/widget/{ID}.js"></script>',
    ],
)
def test_loader_is_found_in_every_form(html: str) -> None:
    assert codes(html) == []


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("", "loader_missing"),
        (f"<!-- {LOADER} -->", "loader_missing"),
        (f"<!-- {LOADER}", "loader_missing"),
        (f"<p>{OURS}/widget/{ID}.js</p>", "loader_missing"),
        (f"<script>load('{OURS}/widget/{ID}.js')</script>", "loader_missing"),
        (LOADER.replace("CHAN1", "CHAN2"), "loader_of_other_channel"),
        (LOADER.replace("support.shop", "other.shop"), "loader_of_other_service"),
        (f"{LOADER.replace('CHAN1', 'CHAN2')}{LOADER}", None),
        ('<script src="http://[x/"></script>', "loader_missing"),
    ],
)
def test_missing_or_foreign_loader_is_named(html: str, expected: str | None) -> None:
    assert codes(html) == ([] if expected is None else [expected])


def test_origin_that_the_channel_does_not_allow_is_named() -> None:
    assert codes(url="https://shop.example/") == ["origin_missing"]
    assert codes(url="https://www.shop.example:8443/") == ["origin_missing"]
    assert codes(url=f"{OURS}/widget/{ID}/demo") == []


def test_disabled_channel_and_failed_page_are_named() -> None:
    assert codes(channel=replace(CHANNEL, enabled=False)) == ["channel_disabled"]
    assert codes(status=404) == ["page_failed"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (f"script-src {OURS}; frame-src {OURS}; connect-src {OURS}", []),
        ("script-src https:; frame-src *; connect-src *.shop.example", []),
        ("default-src https://*.shop.example", []),
        (f"default-src 'none'; script-src-elem {OURS}; child-src {OURS}; connect-src {OURS}", []),
        (f"script-src {OURS}/widget/; frame-src {OURS}/widget/{ID}", []),
        ("upgrade-insecure-requests; img-src 'none'", []),
        ("default-src 'self'", ["csp_blocks_script", "csp_blocks_frame", "csp_blocks_connect"]),
        ("script-src 'self' 'unsafe-inline'", ["csp_blocks_script"]),
        ("script-src 'nonce-abc'", ["csp_blocks_script"]),
        ("script-src 'nonce-abc' 'strict-dynamic' https:", ["csp_blocks_script"]),
        ("frame-src 'none'", ["csp_blocks_frame"]),
        ("frame-src https://*.support.shop.example", ["csp_blocks_frame"]),
        (f"frame-src {OURS}:8443", ["csp_blocks_frame"]),
        (f"script-src {OURS}/other/", ["csp_blocks_script"]),
        ("connect-src 'self'", ["csp_blocks_connect"]),
        (f"frame-src {OURS}, frame-src 'none'", ["csp_blocks_frame"]),
        ("frame-src 'none'; frame-src *", ["csp_blocks_frame"]),
    ],
)
def test_policies_that_block_the_widget_are_named(policy: str, expected: list[str]) -> None:
    assert codes(content_security_policy=policy) == expected
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">{LOADER}'
    assert codes(meta) == expected


def test_nonce_of_the_loaders_tag_allows_it() -> None:
    html = LOADER.replace("<script", '<script nonce="abc"')
    assert codes(html, content_security_policy="script-src 'nonce-abc' 'strict-dynamic'") == []
    assert codes(html, content_security_policy="script-src 'nonce-other'") == ["csp_blocks_script"]


def test_isolated_page_blocks_the_frame() -> None:
    for value in ("require-corp", 'credentialless; report-to="x"', " Require-Corp"):
        assert codes(cross_origin_embedder_policy=value) == ["coep_blocks_frame"]
    assert codes(cross_origin_embedder_policy="unsafe-none") == []


def test_transport_that_browsers_block_is_named() -> None:
    assert "page_not_https" in codes(url="http://www.shop.example/")
    assert "service_not_https" in codes(service="http://support.shop.example")
    local = codes(url="http://localhost:3000/", service="http://localhost:8080", html="")
    assert local == ["loader_missing"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("www.shop.example", "support.shop.example", "yes"),
        ("shop.example", "support.shop.example", "yes"),
        ("shop.example", "shop.example", "yes"),
        ("shop.com", "support.shop.com", "yes"),
        ("shop.com", "other.com", "no"),
        ("a.co.uk", "b.co.uk", "no"),
        ("www.shop.co.uk", "support.shop.co.uk", "yes"),
        ("www.shop.de", "support.shop.de", "yes"),
        ("www.abc.kr", "support.abc.kr", "unknown"),
        ("shop.github.io", "support.github.io", "no"),
        ("a.shop.github.io", "b.shop.github.io", "yes"),
        ("localhost", "127.0.0.1", "no"),
        ("10.0.0.1", "10.0.0.2", "no"),
        ("[::1]", "[::1]", "yes"),
        ("intranet", "support", "no"),
    ],
)
def test_same_site_is_answered_only_where_it_is_sure(first: str, second: str, expected: SameSite) -> None:
    assert same_site(first, second) == same_site(second, first) == expected


def test_page_of_another_site_gets_a_warning_about_its_storage() -> None:
    report = check_page(
        replace(CHANNEL, origins=("https://shop.com",)),
        FetchedPage("https://shop.com/", 200, [], LOADER),
        OURS,
    )
    assert [(each.code, each.severity) for each in report.findings] == [("other_site", "warning")]
    assert report.same_site == "no"


@pytest.mark.parametrize(
    "piece", ["<script ", "<script src=", "<!--", "<meta http-equiv='", "<script>", "<", '"', "a="]
)
def test_hostile_page_takes_little_time(piece: str) -> None:
    html = (piece * PAGE_BYTES_MAX)[:PAGE_BYTES_MAX]
    began = time.process_time()
    script_tags(html)
    meta_policies(html)
    assert time.process_time() - began < 2


def test_port_of_any_length_is_no_port_of_the_service() -> None:
    page = parse_origin("https://www.shop.example")
    assert page is not None
    (policy,) = parse_policies([f"script-src {OURS}:{'1' * 5_000}"])
    assert blocking_directive(policy, "script", f"{OURS}/widget/x.js", page) == "script-src"


@given(st.text(max_size=200), st.text(alphabet="<script meta='\">!-=/ \n", max_size=400))
def test_any_page_and_policy_gets_a_report(policy: str, html: str) -> None:
    assert codes(html, content_security_policy=policy)
    page = parse_origin("https://www.shop.example")
    assert page is not None
    for each in parse_policies([policy, html]):
        blocking_directive(each, "frame", f"{OURS}/widget/x", page)
