"""Which network an address counts for (ADR 41)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.limits.network import network_of, remote_network


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("::FFFF:cb00:7109", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:0DB8:0001:0002::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        (" 203.0.113.9 ", "203.0.113.9"),
        ("unix:", "unix:"),
        ("", ""),
        (None, ""),
    ],
)
def test_an_address_counts_for_its_network(address: str | None, network: str) -> None:
    assert network_of(address) == network


@given(st.ip_addresses(v=4))
def test_ipv4_address_has_one_network_in_any_spelling(address: object) -> None:
    assert network_of(str(address)) == network_of(f"::ffff:{address}") == str(address)


@given(st.integers(1, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_addresses_of_one_64_network_count_together_and_other_networks_separately(
    prefix: int, one: int, other: int
) -> None:
    def written(network: int, host: int) -> str:
        value = f"{network:016x}{host:016x}"
        return ":".join(value[at : at + 4] for at in range(0, 32, 4))

    assert network_of(written(prefix, one)) == network_of(written(prefix, other))
    assert network_of(written(prefix, one)) != network_of(written(prefix ^ 1 << 32, one))


@pytest.mark.parametrize(
    ("address", "party"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("127.0.0.1", None),
        ("::1", None),
        ("::ffff:127.0.0.1", None),
        (None, None),
        ("<local>", None),
    ],
)
def test_shared_address_is_not_counted(address: str | None, party: str | None) -> None:
    assert remote_network(address) == party
