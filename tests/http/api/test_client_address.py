"""The client's address of a request, with trusted, lying and missing proxies (ADR 25)."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.http.api.input.headers import client_address, is_trusted

INSIDE = (ip_network("10.0.0.0/8"), ip_network("127.0.0.1/32"), ip_network("2001:db8:1::/48"))
CLIENT = "203.0.113.9"


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "client"),
    [
        (CLIENT, [], CLIENT),
        (CLIENT, ["192.0.2.1"], CLIENT),  # not a trusted proxy: its header is ignored
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", [CLIENT], CLIENT),
        ("10.0.0.1", [f"192.0.2.1, {CLIENT}"], CLIENT),  # the client began with an address of its choice
        ("10.0.0.1", ["10.0.0.7", CLIENT], CLIENT),  # or with one that is trusted, in a header of its own
        ("10.0.0.1", [f"{CLIENT}, 10.0.0.2", "10.0.0.3"], CLIENT),  # a chain of proxies, over two headers
        ("10.0.0.1", [f" {CLIENT} ,10.0.0.2"], CLIENT),
        ("10.0.0.1", ["10.0.0.4, 10.0.0.2"], "10.0.0.4"),  # from within
        ("10.0.0.1", ["unknown"], "10.0.0.1"),
        ("10.0.0.1", [f"{CLIENT}, unknown, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", [f"{CLIENT},"], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", [f"{CLIENT}:4711"], CLIENT),
        ("10.0.0.1", ["[2001:db8:2::1]:4711"], "2001:db8:2::1"),
        ("10.0.0.1", ["2001:db8:2::1"], "2001:db8:2::1"),
        ("2001:db8:1::1", [CLIENT], CLIENT),
        ("::ffff:10.0.0.1", [f"::ffff:{CLIENT}"], CLIENT),  # a socket that listens to IPv4 and IPv6
        ("127.0.0.1", [CLIENT], CLIENT),
        ("127.0.0.2", [CLIENT], "127.0.0.2"),
    ],
)
def test_last_untrusted_address_is_the_clients(peer: str, forwarded_for: list[str], client: str) -> None:
    assert client_address(peer, forwarded_for, INSIDE) == client


def test_without_trusted_proxies_the_peer_is_the_client() -> None:
    assert client_address("127.0.0.1", [CLIENT], ()) == "127.0.0.1"


@pytest.mark.parametrize("peer", [None, "", "local"])
def test_peer_without_an_address_is_returned_unchanged(peer: str | None) -> None:
    assert client_address(peer, [CLIENT], INSIDE) == peer
    assert not is_trusted(peer, INSIDE)


@given(st.lists(st.text(max_size=60), max_size=4))
def test_client_cannot_change_the_address_seen_by_the_first_trusted_proxy(written: list[str]) -> None:
    assert client_address("10.0.0.1", [*written, CLIENT], INSIDE) == CLIENT


@given(st.lists(st.text(max_size=60), max_size=4))
def test_any_header_gives_an_address_or_the_peer(written: list[str]) -> None:
    address = client_address("10.0.0.1", written, INSIDE)
    assert address is not None
    assert str(ip_address(address)) == address
