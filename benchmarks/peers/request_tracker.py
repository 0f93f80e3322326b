"""Request Tracker 5 (Debian's packages) on a PostgreSQL of its own: nginx before workers of FastCGI, and the REST API."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import httpx
from tests.support.postgres import USER, PostgresServer
from tests.support.sockets.server_process import free_port

from benchmarks import processes
from benchmarks.job import NUMBER, SENT, Call
from benchmarks.peers import nginx
from benchmarks.peers import request_tracker_fill as filling
from benchmarks.peers.peer import (
    APPEND,
    APPENDED_CONVERSATIONS,
    LIST,
    LONG,
    PAGE_SIZE,
    PHRASE,
    READ,
    READ_CONVERSATIONS,
    SEARCH,
    START,
    TEXT,
    WORD,
    Asked,
    Facts,
    NotInstalled,
    Running,
    bodies_of,
)
from benchmarks.references import accepts

_LIBRARY: Final = "/usr/share/request-tracker5/lib"
_WORKER: Final = "/usr/share/request-tracker5/libexec/rt-server.fcgi"
_SETUP: Final = "/usr/sbin/rt-setup-database-5"
_SETUP_INDEX: Final = "/usr/sbin/rt-setup-fulltext-index-5"
_INDEXER: Final = "/usr/sbin/rt-fulltext-indexer-5"
_PACKAGES: Final = "Debian's request-tracker5, rt5-db-postgresql, rt5-fcgi and nginx"
_WORKERS: Final = 3
_BACKLOG: Final = 1_024
_PASSWORD: Final = "a long enough password"
_QUEUE: Final = "General"
_API: Final = "/REST/2.0"
_ORIGIN: Final = {"Origin": "http://localhost"}
"""Without it RT takes a change with a session's cookie for a forged one."""


class RequestTracker:
    """Request Tracker as Debian's package runs it, but for the folders, which are its own."""

    name = "Request Tracker, PostgreSQL"
    slow: Final = True

    def __init__(self, directory: Path, database: PostgresServer) -> None:
        self._directory = directory
        self._database = database
        self._cookie = ""
        self._short, self._long = list[int](), list[int]()

    @property
    def facts(self) -> Facts:
        """See `Peer`."""
        return Facts(
            f"Request Tracker {_version()} (Debian), nginx and {_WORKERS} processes of FastCGI, PostgreSQL",
            "yes (PostgreSQL's own settings), in several commits",
            "webhooks, stream, idempotency, order of events; cron brings its search index up to date",
            "its superuser's session instead of a token (a token costs it a bcrypt each time), mail written "
            "without a formatter of HTML besides and given to a program that discards it, no request log, tickets stored "
            "in bulk and without records of mail; against it: the scripts it comes with run for each message, and each "
            "process loads its code for itself, as Debian starts them",
        )

    def prepare(self, conversations: int) -> None:
        """See `Peer`."""
        _check_installed()
        self._directory.mkdir()
        self._database.run("CREATE DATABASE rt")
        self._configure()
        (password := self._directory / "password").write_text(_PASSWORD)
        self._run(_SETUP, "--action", "init", "--skip-create", "--root-password-file", str(password))
        self._run(_SETUP_INDEX, "--noask", "--dba", USER, "--dba-password", "none")
        self._configure(_SEARCH_SETTINGS)
        with self._served() as (port, _):
            self._cookie = _logged_in(port)
            pattern = self._pattern(port)
        url = self._database.url("rt")
        self._short = filling.fill(url, pattern, bodies_of(conversations, word=True), messages=2)
        self._long = filling.fill(url, pattern, bodies_of(READ_CONVERSATIONS, word=False), messages=LONG)
        self._run(_INDEXER, "--all", "--quiet")
        self._database.run("ANALYZE", "rt")  # as autovacuum does a minute later

    @contextmanager
    def running(self, *, notify: bool = False) -> Iterator[Running]:
        """See `Peer`. It has no way to notify of a message, other than mail."""
        with self._served() as (port, service):
            yield Running(port, service, (self._database.pid,), self._operations())

    @contextmanager
    def _served(self) -> Iterator[tuple[int, Sequence[int]]]:
        """Run it; yield its port and the ids of its processes. Connections wait until a worker is ready."""
        port, path = free_port(), self._directory / "rt.sock"
        path.unlink(missing_ok=True)
        with ExitStack() as stack:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
                listener.listen(_BACKLOG)
                workers = [stack.enter_context(self._worker(listener)) for _ in range(_WORKERS)]
            command = nginx.command(self._directory, port, path)
            front = processes.run(command, core=processes.SERVER, quiet=True)
            stack.callback(processes.stop, front)
            accepts(front, port)
            yield port, [front.pid, *(each.pid for each in workers)]

    @contextmanager
    def _worker(self, listener: socket.socket) -> Iterator[subprocess.Popen[str]]:
        """Run a worker that takes requests from the socket at its standard input, as spawn-fcgi does."""
        with (self._directory / "rt.log").open("ab") as log, processes.on_core(processes.SERVER):
            process = subprocess.Popen(
                [_WORKER], stdin=listener.fileno(), stdout=log, stderr=log, env=self._environment(), text=True
            )
        try:
            yield process
        finally:
            processes.stop(process)

    def _environment(self) -> dict[str, str]:
        """Return variables that keep RT from the machine's own configuration."""
        own = {
            "RT_SITE_CONFIG": str(self._directory / "site.pm"),
            "RT_SITE_CONFIG_DIR": str(self._directory / "more"),
        }
        return os.environ | own

    def _configure(self, more: str = "") -> None:
        """Write the configuration, and the program that mail is given to."""
        (mail := self._directory / "discard").write_text("#!/bin/sh\nexec cat >/dev/null\n")
        mail.chmod(0o755)
        (self._directory / "mason").mkdir(exist_ok=True)
        settings = {
            "Type": "Pg",
            "Host": "127.0.0.1",
            "Port": self._database.port,
            "Name": "rt",
            "User": USER,
        }
        lines = [f"Set($Database{name}, '{value}');" for name, value in settings.items()]
        lines += ["Set($DatabasePassword, 'none');", f"Set($SendmailPath, '{mail}');", _SETTINGS, more]
        lines += [f"$RT::VarPath = '{self._directory}';", f"$RT::MasonDataDir = '{self._directory}/mason';"]
        (self._directory / "site.pm").write_text("\n".join((*lines, "1;", "")))

    def _run(self, *command: str) -> None:
        """Run one of RT's programs. Raises RuntimeError if it fails."""
        done = subprocess.run(
            command,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(
                f"{command[0]} ended with {done.returncode}: {(done.stdout + done.stderr)[-2_000:]}"
            )

    def _pattern(self, port: int) -> int:
        """Create a ticket with a reply by the API, and return its id.

        The rows of all other tickets are copies of its rows.
        """
        text = TEXT.replace(SENT, "0" * 19)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=self._headers(), timeout=60) as api:
            made = api.post(
                f"{_API}/ticket", content=_ticket(text).replace(NUMBER, "0" * 8)
            ).raise_for_status()
            ticket = int(made.json()["id"])
            api.post(f"{_API}/ticket/{ticket}/correspond", content=_reply(text)).raise_for_status()
        return ticket

    def _headers(self) -> dict[str, str]:
        return {**_ORIGIN, "Cookie": self._cookie, "Content-Type": "application/json"}

    def _operations(self) -> Mapping[str, Asked]:
        asked = partial(Asked, headers={**_ORIGIN, "Cookie": self._cookie})
        appends = [
            Call("POST", f"{_API}/ticket/{each}/correspond", _reply(TEXT))
            for each in self._short[-APPENDED_CONVERSATIONS:]
        ]
        contents = urlencode({"fields": "Content,Created,Creator", "per_page": LONG})
        reads = [Call("GET", f"{_API}/ticket/{each}/attachments?{contents}") for each in self._long]
        return {
            APPEND: asked(appends, '"Correspondence added"'),
            START: asked([Call("POST", f"{_API}/ticket", _ticket(TEXT))], '"ticket"'),
            READ: asked(reads, PHRASE, LONG),
            LIST: asked([_list(f"Queue = '{_QUEUE}'")], '"ticket"', PAGE_SIZE),
            SEARCH: asked([_list(f"Content LIKE '{WORD}'")], '"ticket"', PAGE_SIZE),
        }


_SETTINGS: Final = """
Set($CorrespondAddress, 'rt@example.com');
Set($CommentAddress, 'rt-comment@example.com');
Set($Timezone, 'UTC');
Set($HTMLFormatter, 'core');
Set($LogToSyslog, undef);
Set($LogToSTDERR, 'error');
"""
_SEARCH_SETTINGS: Final = (
    "Set(%FullTextSearch, Enable => 1, Indexed => 1, Table => 'AttachmentsIndex', Column => 'ContentIndex');"
)


def _ticket(text: str) -> str:
    about = {"Queue": _QUEUE, "Subject": "Where is my parcel?", "Requestor": f"user-{NUMBER}@example.com"}
    return json.dumps({**about, "Content": text, "ContentType": "text/plain"})


def _reply(text: str) -> str:
    return json.dumps({"Content": text, "ContentType": "text/plain"})


def _list(query: str) -> Call:
    """Return the request for the tickets of a query with the newest changes."""
    order = {"orderby": "LastUpdated", "order": "DESC", "per_page": PAGE_SIZE}
    wanted = {"query": query, "fields": "Subject,Status,LastUpdated"}
    return Call("GET", f"{_API}/tickets?{urlencode({**wanted, **order})}")


def _logged_in(port: int) -> str:
    """Return the cookie of a session of RT's superuser."""
    url = f"http://127.0.0.1:{port}/NoAuth/Login.html"
    answer = httpx.post(url, data={"user": "root", "pass": _PASSWORD}, timeout=60)
    cookies = [each.partition(";")[0] for each in answer.headers.get_list("set-cookie")]
    if not cookies:
        raise RuntimeError(f"Request Tracker does not log in: {answer.status_code} {answer.text[:500]}")
    return cookies[-1]


def _check_installed() -> None:
    """Raise NotInstalled if a part of RT is not there."""
    missing = [each for each in (_WORKER, _SETUP, _SETUP_INDEX, _INDEXER) if not Path(each).exists()]
    missing += [] if nginx.program() else ["nginx"]
    missing += [each for each in ("DBD::Pg", "FCGI") if not missing and not _has_module(each)]
    if missing:
        raise NotInstalled(f"{_PACKAGES} are not all installed: {missing[0]} is missing")


def _has_module(name: str) -> bool:
    return subprocess.run(["perl", f"-M{name}", "-e", "1"], capture_output=True, check=False).returncode == 0


def _version() -> str:
    """Return RT's own version, without Debian's."""
    command = ["perl", f"-I{_LIBRARY}", "-MRT", "-e", "print $RT::VERSION"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.partition("+")[0]
