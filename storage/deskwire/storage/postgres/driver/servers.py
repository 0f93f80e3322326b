"""The servers of a URL: the one in use, its identity, and all sessions with it.

A process has sessions with one server at a time. When another server turns out to be the primary, or the
server in use stops answering, all sessions are ended together by shutting down their sockets, which wakes
every waiting thread and task.

The process remembers the newest system identifier and timeline. A server with an older timeline is a primary
that was replaced, and a server with another identifier belongs to another installation: neither is used.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final
from weakref import WeakKeyDictionary, finalize

import structlog
from msgspec import Struct
from psycopg import pq

from deskwire.engine.core.database_identity import DatabaseIdentity, Reason
from deskwire.storage.postgres.driver.errors import ConnectionLost, Stopping
from deskwire.storage.postgres.driver.opening import (
    GRACE_TIMEOUT_S,
    OpenedSession,
    ServerAddress,
    connect_timeout_s,
    open_best_session,
    open_session_at,
    scan_hosts,
)
from deskwire.storage.postgres.driver.server_identity import KnownServer, ServerIdentity

log: Final = structlog.get_logger(__name__)

_CHECK_INTERVAL_S: Final = 5.0

# Time for the server to answer on another session while a command works. The command itself may take hours: a
# timeout for it would end an index build or a copy that makes progress.
_SILENCE_TIMEOUT_S: Final = 15.0

_KNOWN_SERVER_TIMEOUT_S: Final = 0.5  # Time for the server in use before the other hosts are tried as well.
# Time for the other hosts to answer while no server is known, because a replaced primary may answer first.
_FIRST_GRACE_TIMEOUT_S: Final = 2.0
# Time for which a failed search is cached, so that waiting callers do not repeat it in turn.
_FAILURE_CACHE_S: Final = 0.2
_ADVICE: Final = {
    "older_timeline": (
        "The PostgreSQL at {server} is a primary that was replaced: it writes on timeline {found.timeline}, and this "
        "installation has seen {seen.timeline}. Nothing is stored there. Stop that server, or make a standby of it "
        "(pg_rewind); if it is meant to be the primary, restart the nodes after `deskwire restored`."
    ),
    "other_system": (
        "The PostgreSQL at {server} is another one (system identifier {found.system}) than this installation has used "
        "({seen.system}). Nothing is stored there. Correct DESKWIRE_DATABASE_URL; if the database was moved or restored "
        "there on purpose, stop all nodes, run `deskwire restored` and start them again."
    ),
}


class _Session(Struct, frozen=True):
    address: ServerAddress
    timeline: int | None
    descriptor: int  # a duplicate, because the owner of the session may close the original at any time
    close: Callable[[], object]


class Servers:
    """The servers of one URL; all methods may be called from any thread.

    Attributes:
        identity: records the servers that are refused.
        seen: the newest identity of a server that was used.
    """

    def __init__(self) -> None:
        self.identity: Final = DatabaseIdentity()
        self.seen = KnownServer()
        self._current: ServerAddress | None = None
        self._last: str | None = None
        self._lock = threading.Lock()
        self._searching = threading.Lock()
        self._sessions = WeakKeyDictionary[pq.abc.PGconn, _Session]()
        self._generation = 0
        self._response_at = 0.0
        self._failed: tuple[float, str] | None = None
        self._stopped = False
        self._unknown_logged = False

    @property
    def current(self) -> str | None:
        """The server in use; None while none is known."""
        return None if self._current is None else self._current.server

    def note_answer(self) -> None:
        """Note the time of a server's response."""
        self._response_at = time.monotonic()

    def open(self, options: bytes) -> pq.abc.PGconn:
        """Open a session with the primary: the server in use, or else the best of all hosts.

        The caller ends it by `release`. Raises ConnectionLost if there is none within the options'
        `connect_timeout`.
        """
        until = time.monotonic() + connect_timeout_s(options)
        while True:
            if self._stopped:
                raise Stopping
            generation, known = self._generation, self._current
            found = self._open_known_or_search(options, known, until)
            if found is not None and self._add_session(found, generation):
                return found.connection
            if time.monotonic() >= until:
                raise ConnectionLost("no server was found in time")

    def release(self, connection: pq.abc.PGconn) -> None:
        """End a session."""
        with self._lock:
            session = self._sessions.pop(connection, None)
        connection.finish()
        if session is not None:
            session.close()

    def check_hosts(
        self, options: bytes, seconds: float, is_cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        """Ask all hosts for their identity, and leave a silent server or a replaced primary.

        Args:
            options: of a session, as for `open`.
            seconds: time for the hosts to answer.
            is_cancelled: returns True when the caller no longer needs the check; then nothing is changed.
        """
        began, used = time.monotonic(), self._current
        try:
            found = scan_hosts(options, seconds, lambda: self._stopped or is_cancelled())
        except Stopping:
            return
        primaries = {address: each for address, each in found.found.items() if not each.standby}
        usable = {address: each for address, each in primaries.items() if self.seen.refusal(each) is None}
        newest = max(usable, key=lambda address: usable[address].timeline or 0, default=None)
        if newest is not None and self.seen.is_older_than(usable[newest]):
            self._use(newest, usable[newest])
        elif used is not None and not found.is_alive(used.server) and self._response_at < began:
            self._leave(used)
        if primaries:
            current = self._current
            self._note_refused(primaries, used=current is not None and found.is_alive(current.server))

    def stop(self) -> None:
        """End all sessions, and refuse new ones, so that a stop does not wait for the database."""
        with self._lock:
            self._stopped = True
            self._shut(lambda _: True)

    def _open_known_or_search(
        self, options: bytes, known: ServerAddress | None, until: float
    ) -> OpenedSession | None:
        """Return a session; None if another thread has found a server in the meantime.

        Raises ConnectionLost.
        """
        if known is not None and (found := self._open_known(options, known)) is not None:
            return found
        if not self._searching.acquire(timeout=max(0.0, until - time.monotonic())):
            raise ConnectionLost("no server was found in time")
        try:
            if self._current is not known:
                return None
            if self._failed is not None and time.monotonic() < self._failed[0] + _FAILURE_CACHE_S:
                raise ConnectionLost(self._failed[1])
            return self._search(options)
        finally:
            self._searching.release()

    def _open_known(self, options: bytes, known: ServerAddress) -> OpenedSession | None:
        """Return a session with the server in use; None if it does not open one soon.

        Raises Stopping.
        """
        try:
            found = open_session_at(
                options, known, _KnownServerPolicy(self.seen), _KNOWN_SERVER_TIMEOUT_S, self._is_stopped
            )
        except Stopping:
            raise
        except ConnectionLost:
            return None
        self._use(found.address, found.identity)
        return found

    def _search(self, options: bytes) -> OpenedSession:
        judge, seen = _KnownServerPolicy(self.seen), self.seen
        grace_s = _FIRST_GRACE_TIMEOUT_S if seen == KnownServer() else GRACE_TIMEOUT_S
        try:
            found = open_best_session(options, judge, grace_s=grace_s, stopped=self._is_stopped)
        except Stopping:
            raise
        except ConnectionLost as lost:
            self._failed = time.monotonic(), lost.message
            self._note_refused(judge.met, used=False)
            raise
        self._failed = None
        self._use(found.address, found.identity)
        self._note_refused(judge.met, used=True)
        return found

    def _add_session(self, found: OpenedSession, generation: int) -> bool:
        """Add a session to those of the server in use.

        If the process has left that server, ends the session and returns False. Raises Stopping.
        """
        with self._lock:
            current = self._current
            valid = generation == self._generation and current is not None
            if valid and not self._stopped and current is not None and current.server == found.address.server:
                descriptor = os.dup(found.connection.socket)
                close = finalize(found.connection, os.close, descriptor)
                self._sessions[found.connection] = _Session(
                    found.address, found.identity.timeline, descriptor, close
                )
                return True
        found.connection.finish()
        if self._stopped:
            raise Stopping
        return False

    def _use(self, address: ServerAddress, identity: ServerIdentity) -> None:
        """Use a server from now on, and end the sessions with any other."""
        with self._lock:
            if self.seen.refusal(identity) is not None:
                return  # another thread has found a newer one in the meantime
            before, self._last, self._current = self._last, address.server, address
            self.seen = self.seen.updated_with(identity)
            stale = self._shut(lambda each: _is_stale(each, address, identity))
        if stale or before not in (None, address.server):
            log.info(
                "storage.server_used",
                server=address.server,
                timeline=identity.timeline,
                ended_sessions=stale,
            )
        if identity == ServerIdentity() and not self._unknown_logged:
            self._unknown_logged = True
            log.warning(
                "database.identity_unknown",
                server=address.server,
                advice="this account may call neither pg_control_system() nor pg_walfile_name(): a second primary goes unnoticed",
            )

    def _leave(self, address: ServerAddress) -> None:
        """End all sessions with a server that does not answer."""
        with self._lock:
            if self._current is not address:
                return
            self._current = None
            self._generation += 1
            silent = self._shut(lambda each: each.address.server == address.server)
        log.warning("storage.server_silent", server=address.server, ended_sessions=silent)

    def _note_refused(self, met: Mapping[ServerAddress, ServerIdentity], *, used: bool) -> None:
        """Record the first of these primaries that is refused, or that none is.

        Args:
            used: True if the node uses another server, and so can work.
        """
        for address, identity in met.items():
            reason = self.seen.refusal(identity)
            if reason is not None:
                detail = _refusal_text(reason, address, identity, self.seen)
                self.identity.refuse(reason, detail, blocking=not used)
                return
        if used:
            self.identity.accept()

    def _is_stopped(self) -> bool:
        return self._stopped

    def _shut(self, ends: Callable[[_Session], bool]) -> int:
        """End sessions, with the lock held; return their number.

        Their owners get an error and release them.
        """
        ended = [connection for connection, session in self._sessions.items() if ends(session)]
        for connection in ended:
            session = self._sessions.pop(connection)
            _shut(session.descriptor)
            session.close()
        return len(ended)


def _shut(descriptor: int) -> None:
    """Shut down a socket and its duplicates."""
    sock = socket.socket(fileno=os.dup(descriptor))
    with sock, suppress(OSError):  # the server has closed it already
        sock.shutdown(socket.SHUT_RDWR)


class _KnownServerPolicy:
    """Chooses servers by the newest known identity."""

    def __init__(self, seen: KnownServer) -> None:
        self.met: dict[ServerAddress, ServerIdentity] = {}
        self._seen = seen

    def refusal(self, address: ServerAddress, identity: ServerIdentity) -> str | None:
        """See `opening.ServerPolicy.refusal`."""
        self.met[address] = identity
        reason = self._seen.refusal(identity)
        return None if reason is None else _refusal_text(reason, address, identity, self._seen)

    def is_newer(self, identity: ServerIdentity) -> bool:
        """See `opening.ServerPolicy.is_newer`."""
        return self._seen.is_older_than(identity)


def _is_stale(session: _Session, address: ServerAddress, identity: ServerIdentity) -> bool:
    if session.address.server != address.server:
        return True
    known = session.timeline is not None and identity.timeline is not None
    return known and session.timeline != identity.timeline


def _refusal_text(reason: Reason, address: ServerAddress, found: ServerIdentity, seen: KnownServer) -> str:
    return _ADVICE[reason].format(server=address.server, found=found, seen=seen)


@contextmanager
def watched(servers: Servers, options: bytes) -> Iterator[None]:
    """End the sessions with a silent server while the context is open.

    For work without a node's heartbeats.
    """
    over = threading.Event()

    def check() -> None:
        while not over.wait(_CHECK_INTERVAL_S):
            servers.check_hosts(options, _SILENCE_TIMEOUT_S, is_cancelled=over.is_set)

    thread = threading.Thread(target=check, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
