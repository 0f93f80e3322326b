"""The opening of sessions, which holds up no other thread of the process.

libpq's own call for it waits for the server with Python's lock in its hands: with a server that does not answer, nothing
else in the process would run for seconds. So names are looked up here, each address is tried by itself, and it is
Python that waits.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import psycopg
from psycopg import conninfo, pq

from deskwire.storage.postgres.driver.refusals import ConnectionLost

_TIMEOUT_S: Final = 5.0
"""Time for one address, if its URL names none."""
_PORT: Final = "5432"


def opened(options: bytes) -> pq.abc.PGconn:
    """Open a session with the first server that can be had. Raises ConnectionLost.

    Args:
        options: as libpq takes them; hosts are tried in their order, each at all of its addresses.
    """
    given = conninfo.conninfo_to_dict(options.decode())
    seconds = _seconds(given)
    reasons: list[str] = []
    for address in _addresses(given, reasons):
        try:
            return _opened(conninfo.make_conninfo("", **address).encode(), seconds)
        except ConnectionLost as lost:
            reasons.append(str(lost))
    raise ConnectionLost("; ".join(dict.fromkeys(reasons)) or "no server is named")


def prepare(connection: pq.abc.PGconn, statements: Sequence[bytes], options: bytes) -> None:
    """Carry out statements on a new session, whether or not they are refused. Raises ConnectionLost.

    Args:
        options: those it was opened with; all statements together have the time for one address.
    """
    seconds = _seconds(conninfo.conninfo_to_dict(options.decode()))
    until = time.monotonic() + seconds
    readable = select.poll()
    try:
        readable.register(connection.socket, select.POLLIN)
        for statement in statements:
            connection.send_query(statement)
            answered = False
            while not answered:
                while connection.is_busy():
                    if not readable.poll(max(0.0, until - time.monotonic()) * 1_000):
                        raise ConnectionLost(f"no answer within {seconds:g} s")
                    connection.consume_input()
                answered = connection.get_result() is None
    except psycopg.Error as error:
        raise ConnectionLost(str(error)) from error


def _seconds(given: dict[str, Any]) -> float:
    return float(given.get("connect_timeout") or _TIMEOUT_S)


def _addresses(given: dict[str, Any], reasons: list[str]) -> Iterator[dict[str, Any]]:
    hosts, addresses = (str(given.get(name) or "").split(",") for name in ("host", "hostaddr"))
    ports = str(given.get("port") or "").split(",")
    for number in range(max(len(hosts), len(addresses))):
        one = dict(given)
        one["host"] = hosts[number] if number < len(hosts) else ""
        one["port"] = ports[number] if len(ports) > 1 else ports[0]
        if addresses[0]:
            yield {**one, "hostaddr": addresses[number]}
        elif not one["host"] or one["host"].startswith(("/", "@")):
            yield {name: value for name, value in one.items() if value}
        else:
            for found in _looked_up(one["host"], one["port"] or _PORT, reasons):
                yield {**one, "hostaddr": found}


def _looked_up(host: str, port: str, reasons: list[str]) -> list[str]:
    """Return the addresses of a name; of one that has none add the reason to the others."""
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except OSError as error:
        reasons.append(f"could not look up {host}: {error.strerror or error}")
        return []
    return [*dict.fromkeys(str(each[4][0]) for each in found)]


def _opened(options: bytes, seconds: float) -> pq.abc.PGconn:
    until = time.monotonic() + seconds
    try:
        connection = pq.PGconn.connect_start(options)
        wanted = select.POLLOUT
        while connection.status != pq.ConnStatus.BAD:
            waiting = select.poll()
            waiting.register(connection.socket, wanted)
            if not waiting.poll(max(0.0, until - time.monotonic()) * 1_000):
                connection.finish()
                raise ConnectionLost(f"no answer within {seconds:g} s")
            match connection.connect_poll():
                case pq.PollingStatus.OK:
                    return connection
                case pq.PollingStatus.READING:
                    wanted = select.POLLIN
                case pq.PollingStatus.WRITING:
                    wanted = select.POLLOUT
                case _:
                    break
    except psycopg.Error as error:
        raise ConnectionLost(str(error)) from error
    reason = connection.get_error_message()
    connection.finish()
    raise ConnectionLost(reason)
