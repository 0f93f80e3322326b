"""DNS rebinding: no refused address is dialled, however often the name changes.

Source: decisions 6.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from deskwire.engine.webhooks.http.address import (
    AddressPolicy,
    AddressRefused,
    IPAddress,
    ResolutionFailed,
    SystemResolver,
)
from deskwire.engine.webhooks.http.connectors import DirectConnector
from deskwire.engine.webhooks.url import WebhookUrl, check_url

STRICT = AddressPolicy()
CLOSE_CALLS = [
    *(
        "127.0.0.1",
        "169.254.169.254",
        "10.0.0.1",
        "100.64.0.1",
        "0.0.0.0",
        "::1",
        "fe80::1%lo",
        "fd00::1",
        "::",
    ),
    *("::ffff:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "::127.0.0.1", "2001::"),
]
PUBLIC = ["8.8.8.8", "2606:4700::1", "::ffff:8.8.8.8", "64:ff9b::808:808"]
ADDRESSES = st.one_of(
    st.sampled_from(CLOSE_CALLS).map(ip_address),
    st.sampled_from(PUBLIC).map(ip_address),
    st.sampled_from(PUBLIC).map(ip_address),
    st.ip_addresses(),
)
ANSWERS = st.lists(st.lists(ADDRESSES, max_size=3), min_size=2, max_size=4)


class Recorder(trio.abc.SocketFactory):
    """Creates sockets that connect to nothing and record their destinations."""

    def __init__(self) -> None:
        self.dialled: list[str] = []

    def socket(self, family: Any = None, type: Any = None, proto: Any = None) -> Any:  # noqa: A002  # as in trio
        return Nowhere(self.dialled)


class Nowhere:
    """A socket without a peer."""

    def __init__(self, dialled: list[str]) -> None:
        self._dialled = dialled

    async def connect(self, address: tuple[str, int]) -> None:
        self._dialled.append(address[0])
        await trio.lowlevel.checkpoint()
        raise ConnectionRefusedError("nobody answers here")

    def close(self) -> None:
        """Do nothing, because no real socket is open."""


class Rebinding:
    """A resolver whose result changes with each call."""

    def __init__(self, answers: Sequence[Sequence[IPAddress]]) -> None:
        self._answers: Iterator[Sequence[IPAddress]] = iter(answers)

    async def __call__(self, host: str, port: int) -> Sequence[IPAddress]:
        await trio.lowlevel.checkpoint()
        found = next(self._answers, ())
        if not found:
            raise ResolutionFailed("host has no address")
        return found


@settings(max_examples=150)
@given(ANSWERS)
def test_a_rebound_name_never_dials_a_refused_address(
    answers: list[list[IPAddress]],
) -> None:
    recorder = Recorder()

    async def deliver() -> None:
        trio.socket.set_custom_socket_factory(recorder)
        resolver = Rebinding(answers)
        url = "https://receiver.test/"
        await check_url(url, STRICT, resolver)  # registration, whose result is not used for requests
        for _ in answers:
            with pytest.raises((AddressRefused, ResolutionFailed, OSError)), trio.fail_after(5):
                await DirectConnector(STRICT, resolver).connect(WebhookUrl.parse(url))

    trio.run(deliver)
    assert [each for each in recorder.dialled if STRICT.refusal(ip_address(each)) is not None] == []


@pytest.mark.parametrize(
    "host",
    [
        *("0177.0.0.1", "2130706433", "0x7f000001", "0x7f.1", "127.1", "127.0.0.1.", "0", "017700000001"),
        *("[::ffff:7f00:1]", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "①②⑦.0.0.1", "127。0。0。1"),
        *("localhost", "localhost.", "LOCALHOST", "a@127.0.0.1", "8.8.8.8@127.0.0.1", "127.0.0.1\\@8.8.8.8"),
    ],
)
async def test_no_spelling_of_an_address_of_ones_own_can_be_registered(host: str) -> None:
    problems = await check_url(f"https://{host}/", STRICT, SystemResolver())
    assert {problem.pointer for problem in problems} == {"/url"}


async def test_the_numeric_spellings_are_those_that_a_system_resolver_takes() -> None:
    """Otherwise the test above would prove nothing about them."""
    found = await trio.socket.getaddrinfo("0177.1", 443, type=socket.SOCK_STREAM)
    assert {each[4][0] for each in found} == {"127.0.0.1"}
