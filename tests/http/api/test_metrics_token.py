"""Access to the metrics (ADR 13)."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import Headers

from deskwire.engine.core.errors import Forbidden, Unauthenticated
from deskwire.http.api.auth.metrics_token import ScrapeAccess

TOKEN = "a token of thirty-two characters"
OPEN = ScrapeAccess()


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8080", "localhost", "localhost:1", "[::1]:8080", "LOCALHOST"]
)
def test_without_a_token_this_machine_may_read(peer: str, host: str) -> None:
    OPEN.check_local(peer, Headers({"Host": host}))


@pytest.mark.parametrize(
    "peer", [None, "", "192.0.2.7", "10.0.0.1", "::ffff:192.0.2.7", "2001:db8::1", "local"]
)
def test_without_a_token_another_machine_may_not(peer: str | None) -> None:
    with pytest.raises(Forbidden):
        OPEN.check_local(peer, Headers({"Host": "localhost"}))


@pytest.mark.parametrize(
    "header", ["Forwarded", "X-Forwarded-For", "x-forwarded-host", "X-Forwarded-Proto", "X-Real-IP", "Via"]
)
def test_request_through_a_local_proxy_is_not_local(header: str) -> None:
    with pytest.raises(Forbidden):
        OPEN.check_local("127.0.0.1", Headers({"Host": "localhost", header: "127.0.0.1"}))


@pytest.mark.parametrize(
    "host", ["support.example.com", "deskwire", "192.0.2.7:8080", "[", "", "localhost.evil.test"]
)
def test_a_request_for_another_name_is_not_local(host: str) -> None:
    """A proxy's upstream, or a page whose name was made to resolve to this machine (DNS rebinding)."""
    with pytest.raises(Forbidden):
        OPEN.check_local("127.0.0.1", Headers({"Host": host}))


@pytest.mark.parametrize(
    ("public_url", "local"),
    [
        (None, True),
        ("http://127.0.0.1:8080", True),
        ("http://localhost", True),
        ("https://support.example.com", False),
    ],
)
def test_public_url_implies_a_proxy(public_url: str | None, local: bool) -> None:
    scraping, headers = ScrapeAccess(public_url=public_url), Headers({"Host": "127.0.0.1"})
    if local:
        scraping.check_local("127.0.0.1", headers)
    else:
        with pytest.raises(Forbidden):
            scraping.check_local("127.0.0.1", headers)


@pytest.mark.parametrize("network", ["127.0.0.0/8", "127.0.0.1/32", "0.0.0.0/0"])
def test_trusted_proxy_is_not_local_even_without_headers(network: str) -> None:
    scraping, headers = ScrapeAccess(trusted_proxies=(ip_network(network),)), Headers({"Host": "127.0.0.1"})
    with pytest.raises(Forbidden):
        scraping.check_local("127.0.0.1", headers)
    scraping.check_local("::1", headers)


@given(st.text())
def test_only_the_exact_token_is_accepted(credential: str) -> None:
    scraping = ScrapeAccess(TOKEN)
    scraping.check_token(TOKEN)
    with pytest.raises(Unauthenticated):
        scraping.check_token(credential)


def test_the_token_is_not_in_the_representation() -> None:
    assert TOKEN not in repr(ScrapeAccess(TOKEN))
