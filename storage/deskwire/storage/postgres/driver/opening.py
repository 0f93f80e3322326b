"""Opening of sessions with the primary, by concurrent attempts at all hosts of the URL.

libpq's own function tries one host after the other and holds Python's lock while it waits: with a server that
does not answer, nothing else in the process would run for seconds. So names are looked up here, each address
is a separate attempt, and this module waits for all of them together.

A host that has refused is tried again while others have not answered: a standby may be promoted at any time.
"""

from __future__ import annotations

import ipaddress
import select
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import psycopg
from msgspec import Struct, field
from psycopg import conninfo, pq

from deskwire.storage.postgres.driver.errors import ConnectionLost, Stopping
from deskwire.storage.postgres.driver.server_identity import ServerIdentity, first_row, identity_queries

# Time for the other hosts to answer once one is usable, because another one may have been promoted later.
GRACE_TIMEOUT_S: Final = 0.5
_CONNECT_TIMEOUT_S: Final = 5.0  # Time for all hosts together, if the URL names none.
_RETRY_DELAY_S: Final = 0.25  # Pause before a host that has refused is tried again.
# Pause before a name is looked up again: the address of a service moves with its primary.
_LOOKUP_INTERVAL_S: Final = 1.0
# Interval at which lookups and the stop are checked, because no descriptor announces them.
_POLL_INTERVAL_S: Final = 0.02
_PORT: Final = "5432"


class ServerAddress(NamedTuple):
    """An address of a host of the URL; `hostaddr` is empty for a directory of sockets."""

    host: str
    port: str
    hostaddr: str

    @property
    def server(self) -> str:
        """The host and port as the URL names them: all addresses of one name are one server."""
        return f"{self.host or self.hostaddr or 'local'}:{self.port or _PORT}"


class OpenedSession(NamedTuple):
    """A session, its address and its server's identity."""

    connection: pq.abc.PGconn
    address: ServerAddress
    identity: ServerIdentity


class FailedAttempt(NamedTuple):
    """A failed attempt; `answered` is True if the server itself refused it."""

    reason: str
    answered: bool = False


class ServerPolicy(Protocol):
    """The rules for choosing one of the usable servers."""

    def refusal(self, address: ServerAddress, identity: ServerIdentity) -> str | None:
        """Return why a server must not be used; None if it may be."""

    def is_newer(self, identity: ServerIdentity) -> bool:
        """Return whether a server was certainly promoted after all known ones."""


_Attempt: TypeAlias = Generator[tuple[int, int], None, tuple[pq.abc.PGconn, ServerIdentity]]


class _Running(Struct, eq=False):
    steps: _Attempt
    socket: int
    wanted: int


class _Refused(Exception):
    """Raised when the server itself refuses an attempt."""


class Attempts(Struct):
    """Concurrent attempts at all addresses of a URL's hosts.

    Args:
        options_given: the options of libpq.
        stopped: returns True when the result is no longer needed.
        usable: the open sessions, by address.
        failed: the last failure of each address.
    """

    options_given: dict[str, Any]
    stopped: Callable[[], bool]
    usable: dict[ServerAddress, OpenedSession] = field(default_factory=dict)
    failed: dict[ServerAddress, FailedAttempt] = field(default_factory=dict)
    _running: dict[ServerAddress, _Running] = field(default_factory=dict)
    _tried_at: dict[ServerAddress, float] = field(default_factory=dict)

    @property
    def under_way(self) -> Sequence[ServerAddress]:
        """The addresses at which an attempt has neither succeeded nor failed."""
        return [*self._running]

    def begin(self, address: ServerAddress) -> None:
        """Begin an attempt, unless one is running or the retry delay is not over."""
        now = time.monotonic()
        tried_at = self._tried_at.get(address)
        if address in self._running or address in self.usable:
            return
        if tried_at is not None and now < tried_at + _RETRY_DELAY_S:
            return
        self._tried_at[address] = now
        self._step(address, _attempt(self.options_given, address))

    def wait(self, until: float) -> None:
        """Advance the attempts whose sockets are ready.

        Returns within 20 ms, or at `until` if that is earlier. Raises Stopping.
        """
        if self.stopped():
            raise Stopping
        seconds = max(0.0, min(_POLL_INTERVAL_S, until - time.monotonic()))
        if not self._running:
            time.sleep(seconds)
            return
        waiting, addresses = select.poll(), dict[int, ServerAddress]()
        for address, running in self._running.items():
            addresses[running.socket] = address
            waiting.register(running.socket, running.wanted)
        for number, _ in waiting.poll(seconds * 1_000):
            address = addresses[number]
            self._step(address, self._running.pop(address).steps)

    def refuse(self, address: ServerAddress, reason: str) -> None:
        """End an open session, and count the attempt as failed."""
        self.usable.pop(address).connection.finish()
        self.failed[address] = FailedAttempt(reason, answered=True)

    def take(self, address: ServerAddress) -> OpenedSession:
        """Return an open session, which the caller then owns."""
        return self.usable.pop(address)

    def close(self) -> None:
        """End all attempts, and all open sessions that were not taken."""
        for running in self._running.values():
            running.steps.close()
        for opened_ in self.usable.values():
            opened_.connection.finish()
        self._running.clear()
        self.usable.clear()

    def _step(self, address: ServerAddress, steps: _Attempt) -> None:
        try:
            number, wanted = next(steps)
        except StopIteration as done:
            self.usable[address] = OpenedSession(done.value[0], address, done.value[1])
            self.failed.pop(address, None)
        except _Refused as refused:
            self.failed[address] = FailedAttempt(str(refused), answered=True)
        except (psycopg.Error, OSError) as error:
            self.failed[address] = FailedAttempt(str(error))
        else:
            self._running[address] = _Running(steps, number, wanted)


def connect_timeout_s(options: bytes) -> float:
    """Return the time for opening a session with these options.

    libpq's zero, which means no timeout, counts as not given.
    """
    seconds = float(conninfo.conninfo_to_dict(options.decode()).get("connect_timeout") or 0)
    return seconds if seconds > 0 else _CONNECT_TIMEOUT_S


def open_best_session(
    options: bytes,
    policy: ServerPolicy,
    *,
    grace_s: float = GRACE_TIMEOUT_S,
    stopped: Callable[[], bool] = lambda: False,
) -> OpenedSession:
    """Open a session with the best of the servers in the options, which are all tried at once.

    A server that was certainly promoted last wins immediately. Any other wins when each other host has
    answered, after `grace_s`, or at the end of `connect_timeout`.

    Args:
        options: in libpq's form; `connect_timeout` is for all hosts together.

    Raises ConnectionLost with all reasons if no server is usable, at the end of `connect_timeout` at the
    latest.
    """
    options_given, seconds = conninfo.conninfo_to_dict(options.decode()), connect_timeout_s(options)
    names, attempts = _HostNames(options_given), Attempts(options_given, stopped)
    until = time.monotonic() + seconds
    usable_since: float | None = None
    try:
        while True:
            for address in names.addresses():
                attempts.begin(address)
            attempts.wait(until)
            _refuse_unusable(attempts, policy)
            now, unfinished = time.monotonic(), names.pending or attempts.under_way
            best = max(attempts.usable.values(), key=_timeline, default=None)
            if best is not None:
                usable_since = usable_since or now
                grace_over = now >= min(usable_since + grace_s, until)
                if grace_over or not unfinished or policy.is_newer(best.identity):
                    return attempts.take(best.address)
            elif now >= until or not unfinished:
                raise ConnectionLost(_reasons(names, attempts, seconds))
    finally:
        attempts.close()


def open_session_at(
    options: bytes, address: ServerAddress, policy: ServerPolicy, seconds: float, stopped: Callable[[], bool]
) -> OpenedSession:
    """Open a session at one address. Raises ConnectionLost after `seconds`."""
    attempts, until = (
        Attempts(conninfo.conninfo_to_dict(options.decode()), stopped),
        time.monotonic() + seconds,
    )
    try:
        attempts.begin(address)
        while attempts.under_way and time.monotonic() < until:
            attempts.wait(until)
        _refuse_unusable(attempts, policy)
        if address in attempts.usable:
            return attempts.take(address)
        failed = attempts.failed.get(address)
        raise ConnectionLost(f"no answer within {seconds:g} s" if failed is None else failed.reason)
    finally:
        attempts.close()


class HostScan(NamedTuple):
    """The servers of a URL at one moment.

    Args:
        found: the identities of the servers that opened a session.
        refused: the servers that refused one, and so are alive.
    """

    found: dict[ServerAddress, ServerIdentity]
    refused: frozenset[ServerAddress]

    def is_alive(self, server: str) -> bool:
        """Return whether a server has answered at any of its addresses."""
        return any(address.server == server for address in (*self.found, *self.refused))


def scan_hosts(options: bytes, seconds: float, stopped: Callable[[], bool] = lambda: False) -> HostScan:
    """Ask all hosts for their identity, within `seconds`. Raises Stopping."""
    options_given = {**conninfo.conninfo_to_dict(options.decode()), "target_session_attrs": "any"}
    names, attempts = _HostNames(options_given), Attempts(options_given, stopped)
    until = time.monotonic() + seconds
    try:
        begun: set[ServerAddress] = set()
        while time.monotonic() < until:
            for address in names.addresses():
                if address not in begun:
                    begun.add(address)
                    attempts.begin(address)
            attempts.wait(until)
            if not (names.pending or attempts.under_way):
                break
        refused = frozenset(address for address, failed in attempts.failed.items() if failed.answered)
        return HostScan({each.address: each.identity for each in attempts.usable.values()}, refused)
    finally:
        attempts.close()


def apply_settings(connection: pq.abc.PGconn, statements: Sequence[bytes], options: bytes) -> None:
    """Run statements on a new session, and ignore refusals. Raises ConnectionLost.

    Args:
        options: the options of the session; their connect timeout is the time for all statements together.
    """
    seconds = connect_timeout_s(options)
    until = time.monotonic() + seconds
    readable = select.poll()
    try:
        readable.register(connection.socket, select.POLLIN)
        for statement in statements:
            for _ in _answer(connection, statement):
                if not readable.poll(max(0.0, until - time.monotonic()) * 1_000):
                    raise ConnectionLost(f"no answer within {seconds:g} s")
    except psycopg.Error as error:
        raise ConnectionLost(str(error)) from error


def _refuse_unusable(attempts: Attempts, policy: ServerPolicy) -> None:
    for each in [*attempts.usable.values()]:
        if (reason := policy.refusal(each.address, each.identity)) is not None:
            attempts.refuse(each.address, reason)


def _timeline(one: OpenedSession) -> int:
    return one.identity.timeline or 0


def _reasons(names: _HostNames, attempts: Attempts, seconds: float) -> str:
    grace_over = [f"{address.server}: no answer within {seconds:g} s" for address in attempts.under_way]
    reasons = [*names.reasons, *(failed.reason for failed in attempts.failed.values()), *grace_over]
    return "; ".join(dict.fromkeys(reasons)) or "no server is named"


class _HostNames:
    """The addresses of a URL's hosts.

    Names are looked up in threads, because a resolver may take long or never answer.
    """

    def __init__(self, options_given: dict[str, Any]) -> None:
        self.reasons: list[str] = []
        self.pending = 0
        self._entries = [*_entries(options_given)]
        self._known: dict[ServerAddress, Sequence[ServerAddress]] = {}
        self._found: SimpleQueue[tuple[ServerAddress, Sequence[ServerAddress], str | None]] = SimpleQueue()
        self._looked_up_at: float | None = None

    def addresses(self) -> Sequence[ServerAddress]:
        """Return the known addresses in the URL's order.

        The first call looks up the host names; later calls repeat the lookup at most once a second.
        """
        now = time.monotonic()
        if self._looked_up_at is None or (
            not self.pending and now >= self._looked_up_at + _LOOKUP_INTERVAL_S
        ):
            self._looked_up_at = now
            self._look_up()
        self._collect()
        known = [address for entry in self._entries for address in self._known.get(entry, ())]
        return [*dict.fromkeys(known)]

    def _look_up(self) -> None:
        self.reasons.clear()
        for entry in self._entries:
            if _needs_no_lookup(entry):
                self._known[entry] = [entry]
            else:
                self.pending += 1
                threading.Thread(target=self._look_up_one, args=(entry,), daemon=True).start()

    def _look_up_one(self, entry: ServerAddress) -> None:
        try:
            found = socket.getaddrinfo(entry.host, int(entry.port or _PORT), type=socket.SOCK_STREAM)
        except (OSError, ValueError) as error:
            self._found.put((entry, (), f"could not look up {entry.host}: {error}"))
        else:
            addresses = dict.fromkeys(str(each[4][0]) for each in found)
            self._found.put((entry, [entry._replace(hostaddr=each) for each in addresses], None))

    def _collect(self) -> None:
        while True:
            try:
                entry, addresses, reason = self._found.get_nowait()
            except Empty:
                return
            self.pending -= 1
            if reason is None:
                self._known[entry] = addresses
            else:
                self.reasons.append(reason)


def _entries(options_given: dict[str, Any]) -> Iterator[ServerAddress]:
    """Yield the hosts as the URL names them; `hostaddr` is empty for a name."""
    hosts, addresses = (str(options_given.get(name) or "").split(",") for name in ("host", "hostaddr"))
    ports = str(options_given.get("port") or "").split(",")
    for number in range(max(len(hosts), len(addresses))):
        host = hosts[number] if number < len(hosts) else ""
        port = ports[number] if len(ports) > 1 else ports[0]
        yield ServerAddress(host, port, addresses[number] if addresses[0] else _literal(host))


def _literal(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return ""


def _needs_no_lookup(entry: ServerAddress) -> bool:
    return bool(entry.hostaddr) or not entry.host or entry.host.startswith(("/", "@"))


def _options_at(options_given: dict[str, Any], address: ServerAddress) -> bytes:
    one = {name: value for name, value in {**options_given, **address._asdict()}.items() if value}
    for name in ("host", "port", "hostaddr"):
        if not getattr(address, name):
            one.pop(name, None)
    return conninfo.make_conninfo("", **one).encode()


def _attempt(options_given: dict[str, Any], address: ServerAddress) -> _Attempt:
    """Open a session step by step, and ask for the server's identity.

    Yields a socket and the event to poll it for. Raises _Refused or psycopg.Error.
    """
    connection = pq.PGconn.connect_start(_options_at(options_given, address))
    try:
        yield from _connected(connection)
        asking = identity_queries()
        sql = next(asking)
        while True:
            answer = yield from _answer(connection, sql.encode())
            try:
                sql = asking.send(None if answer is None else first_row(answer))
            except StopIteration as done:
                return connection, done.value
    except BaseException:  # re-raised: only the attempt has the connection until it returns, so it closes it
        connection.finish()
        raise


def _connected(connection: pq.abc.PGconn) -> Generator[tuple[int, int], None, None]:
    wanted = select.POLLOUT
    while connection.status != pq.ConnStatus.BAD:
        yield connection.socket, wanted
        match connection.connect_poll():
            case pq.PollingStatus.OK:
                return
            case pq.PollingStatus.READING:
                wanted = select.POLLIN
            case pq.PollingStatus.WRITING:
                wanted = select.POLLOUT
            case _:
                break
    reason = connection.get_error_message()
    if wanted == select.POLLIN and not any(words in reason for words in _NOT_ANSWERED):
        raise _Refused(reason)
    raise psycopg.OperationalError(reason)


# Messages of libpq for a connection that ended without a message from the server.
_NOT_ANSWERED: Final = ("closed the connection", "could not receive data", "Connection refused")


def _answer(
    connection: pq.abc.PGconn, statement: bytes
) -> Generator[tuple[int, int], None, pq.abc.PGresult | None]:
    """Send a statement, and return its last result.

    Yields like `_attempt`; raises psycopg.Error.
    """
    connection.send_query(statement)
    last: pq.abc.PGresult | None = None
    while True:
        while connection.is_busy():
            yield connection.socket, select.POLLIN
            connection.consume_input()
        answer = connection.get_result()
        if answer is None:
            return last
        last = answer
