"""The advice when a port can't be taken: about the host if that is wrong, else about the port."""

from __future__ import annotations

import errno
import socket

import pytest

from deskwire.program.port import advice, take

HOST, PORT = "Set --host (DESKWIRE_HOST)", "Try another --port (DESKWIRE_PORT)."


def refusal(host: str) -> OSError:
    """Return the error of taking a port there that is occupied on 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as occupied, pytest.raises(OSError) as refused:  # noqa: PT011
        take(host, occupied.getsockname()[1])
    return refused.value


@pytest.mark.parametrize("host", ["999.1.1.1", "203.0.113.7", "a..b", "fe80::1", "2001:db8::1", "[::1]"])
def test_host_that_is_not_of_this_machine_is_the_advice(host: str) -> None:
    assert advice(refusal(host)).startswith(HOST)


def test_occupied_port_is_the_advice() -> None:
    assert advice(refusal("127.0.0.1")) == PORT


def test_port_that_needs_a_privilege_is_the_advice() -> None:
    assert "1024" in advice(PermissionError(errno.EACCES, "Permission denied"))
