"""Addresses and URLs that webhooks may go to (contract 6.2.2, decisions 6)."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from deskwire.engine.webhooks.http.address import AddressPolicy, IPAddress, ResolutionFailed, SystemResolver
from deskwire.engine.webhooks.url import URL_LENGTH_MAX, check_url, url_problems
from tests.support.sockets.receivers import resolving

STRICT = AddressPolicy()
HINT = (
    "The service's operator can allow it: a network by DESKWIRE_WEBHOOK_ALLOW,"
    " everything, for development, by --allow-private-webhooks."
)

REFUSED = {
    "127.0.0.1": "127.0.0.1 is loopback",
    "127.255.0.1": "127.255.0.1 is loopback",
    "0.0.0.0": "0.0.0.0 is unspecified",
    "10.1.2.3": "10.1.2.3 is private",
    "172.16.0.1": "172.16.0.1 is private",
    "192.168.1.1": "192.168.1.1 is private",
    "169.254.169.254": "169.254.169.254 is link-local",
    "100.64.0.1": "100.64.0.1 is shared address space (CGNAT)",
    "100.127.255.255": "100.127.255.255 is shared address space (CGNAT)",
    "192.0.2.1": "192.0.2.1 is private",
    "198.18.0.1": "198.18.0.1 is private",
    "192.88.99.1": "192.88.99.1 is a retired 6to4 relay",
    "224.0.1.1": "224.0.1.1 is multicast",
    "240.0.0.1": "240.0.0.1 is reserved",
    "255.255.255.255": "255.255.255.255 is reserved",
    "::": ":: is unspecified",
    "::1": "::1 is loopback",
    "fe80::1": "fe80::1 is link-local",
    "fe80::1%eth0": "fe80::1%eth0 is link-local",
    "fec0::1": "fec0::1 is site-local",
    "fc00::1": "fc00::1 is private",
    "fd12:3456::1": "fd12:3456::1 is private",
    "ff02::1": "ff02::1 is multicast",
    "ff0e::1": "ff0e::1 is multicast",
    "2001:db8::1": "2001:db8::1 is private",
    "3fff::1": "3fff::1 is not a public address",
    "100::1": "100::1 is reserved",
    "::127.0.0.1": "::7f00:1 is reserved",
    "::ffff:0:127.0.0.1": "::ffff:0:7f00:1 is reserved",
    "::ffff:127.0.0.1": "::ffff:7f00:1 is an IPv4-mapped address: 127.0.0.1 is loopback",
    "::ffff:100.64.0.1": "::ffff:6440:1 is an IPv4-mapped address: 100.64.0.1 is shared address space (CGNAT)",
    "64:ff9b::10.0.0.1": "64:ff9b::a00:1 is a NAT64 address: 10.0.0.1 is private",
    "64:ff9b:1::10.0.0.1": "64:ff9b:1::a00:1 is a NAT64 address: 10.0.0.1 is private",
    "64:ff9b:1::8.8.8.8": "64:ff9b:1::808:808 is a local NAT64 address",
    "2002:7f00:1::1": "2002:7f00:1::1 is a 6to4 address: 127.0.0.1 is loopback",
    "2001:0:808:808::f5ff:fffe": "2001:0:808:808::f5ff:fffe is a Teredo address: 10.0.0.1 is private",
}


@pytest.mark.parametrize(("address", "reason"), REFUSED.items())
def test_an_address_that_is_not_public_is_refused_with_its_reason(address: str, reason: str) -> None:
    """Decisions 6: loopback, private, link-local, CGNAT, multicast, reserved, and addresses that embed them."""
    refusal = STRICT.refusal(ip_address(address))
    assert refusal is not None
    (named, _, flaw), (wanted, _, wanted_flaw) = refusal.partition(" is "), reason.partition(" is ")
    assert (ip_address(named), flaw) == (
        ip_address(wanted),
        wanted_flaw,
    )  # Python versions write it in two ways


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "2606:4700::1", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8", "2002:808:808::1"]
)
def test_public_address_is_allowed(address: str) -> None:
    assert STRICT.refusal(ip_address(address)) is None


@given(st.ip_addresses(v=4))
def test_no_form_of_an_address_says_more_than_the_address_itself(address: IPAddress) -> None:
    plain = STRICT.refusal(address)
    for form in ("::ffff:", "64:ff9b::"):
        assert (STRICT.refusal(ip_address(f"{form}{address}")) is None) == (plain is None)


def test_networks_of_the_allow_list_are_allowed_in_every_form() -> None:
    """Decisions 6: DESKWIRE_WEBHOOK_ALLOW."""
    policy = AddressPolicy(allow=(ip_network("10.0.0.0/8"), ip_network("fd00::/8")))
    assert policy.refusal(ip_address("10.9.8.7")) is None
    assert policy.refusal(ip_address("::ffff:10.9.8.7")) is None
    assert policy.refusal(ip_address("fd00::1")) is None
    assert policy.refusal(ip_address("192.168.0.1")) is not None


@given(st.ip_addresses())
def test_development_setting_allows_every_address(address: IPAddress) -> None:
    """Decisions 6: --allow-private-webhooks."""
    assert AddressPolicy(allow_private=True).refusal(address) is None


@pytest.mark.parametrize(
    ("url", "codes"),
    [
        ("http://example.com/", ["url_not_https"]),
        ("ftp://example.com/", ["url_not_https"]),
        ("example.com/hook", ["url_not_https", "url_no_host"]),
        ("", ["url_not_https", "url_no_host"]),
        ("https:///hook", ["url_no_host"]),
        ("https://me:pw@example.com/", ["url_user_info"]),
        ("https://@example.com/", ["url_user_info"]),
        ("https://example.com/#part", ["url_fragment"]),
        ("https://example.com/#", ["url_fragment"]),
        ("https://example.com:22/", ["url_port"]),
        ("https://example.com:80/", ["url_port"]),
        ("https://example.com:1023/", ["url_port"]),
        ("https://example.com:65536/", ["url_port"]),
        ("https://example.com:0/", ["url_port"]),
        ("https://example.com:x/", ["url_malformed"]),
        ("https://exa mple.com/", ["url_characters"]),
        ("https://example.com/\r\nHost: x", ["url_characters"]),
        ("https://example.com/\u200b", ["url_characters"]),
        ("https://0177.0.0.1/", ["url_malformed"]),
        ("https://a..b/", ["url_host_invalid"]),
        ("https://-a.example/", ["url_host_invalid"]),
        ("https://%31%32%37.0.0.1/", ["url_host_invalid"]),
        ("https://*.example.com/", ["url_host_invalid"]),
        (f"https://{'a' * 64}.com/", ["url_host_invalid"]),
        ("https://xn--/", ["url_host_invalid"]),
        ("https://\u2177.example/", ["url_malformed"]),
        ("https://good.example\\@127.0.0.1/", ["url_user_info", "url_host_invalid"]),
        (f"https://example.com/{'a' * URL_LENGTH_MAX}", ["url_too_long"]),
        ("http://me@example.com:22/#x", ["url_not_https", "url_user_info", "url_port", "url_fragment"]),
    ],
)
def test_every_problem_of_a_url_is_found_at_once(url: str, codes: list[str]) -> None:
    """Contract 6.2.2; decisions 1, 6."""
    problems = url_problems(url, STRICT)
    assert [problem.code for problem in problems] == codes
    assert {problem.pointer for problem in problems} == {"/url"}


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://example.com/hook?x=1@2",
        "https://example.com:443/",
        "https://example.com:1024/",
        "https://example.com:65535/",
        "https://bücher.example/",
        "https://my_host.example./",
        "https://a--b.example/",
        "https://[2606:4700::1]:8443/",
        "https://8.8.8.8/",
    ],
)
def test_a_good_url_has_no_problem(url: str) -> None:
    assert url_problems(url, STRICT) == ()


def test_plain_http_is_for_development_only() -> None:
    """Decisions 6: --allow-private-webhooks (http too)."""
    assert url_problems("http://localhost/", AddressPolicy(allow_private=True)) == ()
    assert url_problems("http://localhost:8080/", AddressPolicy(allow_private=True)) == ()


async def test_a_url_is_refused_when_one_of_its_addresses_is() -> None:
    """Decisions 6: a refusal at registration contains its reason."""
    problems = await check_url("https://example.com/", STRICT, resolving("8.8.8.8", "10.0.0.1", "::1"))
    assert [(problem.code, problem.message) for problem in problems] == [
        ("url_address_refused", f"The URL must be public: 10.0.0.1 is private. {HINT}"),
        ("url_address_refused", f"The URL must be public: ::1 is loopback. {HINT}"),
    ]


async def test_a_url_with_public_addresses_is_accepted() -> None:
    assert await check_url("https://example.com/", STRICT, resolving("8.8.8.8")) == ()


async def test_a_url_that_is_malformed_is_not_even_resolved() -> None:
    async def never(_host: str, _port: int) -> list[IPAddress]:
        raise AssertionError("resolved")

    assert [p.code for p in await check_url("http://x/", STRICT, never)] == ["url_not_https"]


async def test_a_name_without_an_address_is_refused_with_its_reason() -> None:
    async def unknown(host: str, _port: int) -> list[IPAddress]:
        raise ResolutionFailed(f"host not found: {host}")

    (problem,) = await check_url("https://nowhere.example/", STRICT, unknown)
    assert (problem.code, problem.message) == (
        "url_host_unknown",
        "The host not found: nowhere.example.",
    )


async def test_a_name_server_that_never_answers_is_given_up(autojump_clock: MockClock) -> None:
    async def silent(_host: str, _port: int) -> list[IPAddress]:
        await trio.sleep_forever()
        raise AssertionError("unreachable")

    (problem,) = await check_url("https://slow.example/", STRICT, silent)
    assert problem.code == "url_host_unknown"
    assert trio.current_time() == 5


@pytest.mark.parametrize("host", ["0x7f.1", "2130706433", "127.1", "127.0.0.1", "127。0。0。1"])
async def test_odd_spellings_of_an_address_are_checked_by_their_meaning(host: str) -> None:
    """Decisions 6: the policy checks the address that is actually dialled."""
    problems = await check_url(f"https://{host}/", STRICT, SystemResolver())
    assert [problem.message for problem in problems] == [
        f"The URL must be public: 127.0.0.1 is loopback. {HINT}"
    ]


async def test_a_dot_at_the_end_of_a_name_hides_nothing() -> None:
    assert await check_url("https://localhost./", STRICT, SystemResolver())
    assert await check_url("https://127.0.0.1./", STRICT, SystemResolver())
