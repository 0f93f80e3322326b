"""django-helpdesk (from the package index) on gunicorn: its REST API, and the list of its pages, which is faster than the API's."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.support.postgres import USER, PostgresServer
from tests.support.sockets.server_process import free_port

from benchmarks import processes
from benchmarks.job import NUMBER, Call
from benchmarks.peers import environment, subscribers
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
    Running,
    bodies_of,
)
from benchmarks.references import accepts

_WORKERS, _THREADS = 3, 4
_SITE: Final = "benchmarks.peers.helpdesk_site"
_KEEP_ALIVE_S: Final = 75
_PACKAGES: Final = ("django-helpdesk", "Django", "gunicorn")


class DjangoHelpdesk:
    """django-helpdesk on SQLite, or on a PostgreSQL of its own."""

    slow: Final = True

    def __init__(self, directory: Path, packages: Path, database: PostgresServer | None = None) -> None:
        self._directory = directory
        self._packages = packages
        self._database = database
        self._python = Path()
        self._filled = dict[str, Any]()
        self.name = "django-helpdesk" if database is None else "django-helpdesk, PostgreSQL"

    @property
    def facts(self) -> Facts:
        """See `Peer`."""
        helpdesk, django, gunicorn = (environment.version(self._python, each) for each in _PACKAGES)
        on = "SQLite" if self._database is None else "PostgreSQL"
        how = "WAL and synchronous=FULL" if self._database is None else "PostgreSQL's own settings"
        return Facts(
            f"django-helpdesk {helpdesk} (Django {django}), gunicorn {gunicorn} with {_WORKERS} processes of {_THREADS} "
            f"threads, {on}",
            f"yes ({how}), in several commits",
            "idempotency, order of events, stream; its webhook is sent within the request, unsigned and once; its search "
            "looks for a part of titles and first messages",
            "tokens instead of passwords, connections that stay open, no mail, no request log, lists and searches by its "
            "pages' faster source, tickets stored in bulk",
        )

    def prepare(self, conversations: int) -> None:
        """See `Peer`."""
        self._python = environment.python(self._packages, "peers.txt")
        self._directory.mkdir()
        if self._database is not None:
            self._database.run("CREATE DATABASE helpdesk")
        asked = {
            "texts": bodies_of(conversations, word=True),
            "long_texts": bodies_of(READ_CONVERSATIONS, word=False),
            "long": LONG,
        }
        done = subprocess.run(
            [str(self._python), "-m", f"{_SITE}.fill"],
            input=json.dumps(asked),
            env=os.environ | self._settings(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"django-helpdesk was not filled: {done.stderr[-2_000:]}")
        self._filled = json.loads(done.stdout.splitlines()[-1])

    @contextmanager
    def running(self, *, notify: bool = False) -> Iterator[Running]:
        """See `Peer`."""
        with ExitStack() as stack:
            settings, ways = self._settings(), dict[str, Any]()
            if notify:
                url, ages = stack.enter_context(subscribers.webhook())
                settings["HELPDESK_FOLLOWUP_WEBHOOK_URLS"], ways["webhook"] = url, partial(nullcontext, ages)
            port = free_port()
            process = processes.run(self._command(port), core=processes.SERVER, settings=settings, quiet=True)
            stack.callback(processes.stop, process)
            accepts(process, port)
            database = () if self._database is None else (self._database.pid,)
            yield Running(port, (process.pid,), database, self._operations(), ways)

    def _settings(self) -> dict[str, str]:
        """Return variables of its environment; its path has the project's root, but not the project's packages."""
        common = {"PYTHONPATH": str(environment.ROOT), "PEER_MEDIA": str(self._directory)}
        if self._database is None:
            return {**common, "PEER_SQLITE": str(self._directory / "helpdesk.sqlite3")}
        return {**common, "PEER_POSTGRES": f"{self._database.port} {USER} helpdesk"}

    def _command(self, port: int) -> list[str]:
        options = {"bind": f"127.0.0.1:{port}", "worker-class": "gthread", "keep-alive": _KEEP_ALIVE_S}
        options |= {"workers": _WORKERS, "threads": _THREADS}
        arguments = [f"--{name}={value}" for name, value in options.items()]
        return [str(self._python), "-m", "gunicorn", *arguments, f"{_SITE}.wsgi:application"]

    def _operations(self) -> Mapping[str, Asked]:
        filled = self._filled
        api = partial(Asked, headers={"Authorization": f"Token {filled['token']}"})
        page = partial(Asked, headers={"Cookie": f"sessionid={filled['session']}"}, holds='"row_class"')
        appends = [
            Call("POST", "/api/followups/", _followup(each))
            for each in filled["short"][-APPENDED_CONVERSATIONS:]
        ]
        return {
            APPEND: api(appends, PHRASE),
            START: api([Call("POST", "/api/tickets/", _ticket(filled["queue"]))], '"description":"sent '),
            READ: api([Call("GET", f"/api/tickets/{each}/") for each in filled["long"]], PHRASE, LONG),
            LIST: page([_list()], times=PAGE_SIZE),
            SEARCH: page([_list(WORD)], times=PAGE_SIZE),
        }


def _followup(ticket: int) -> str:
    return json.dumps({"ticket": ticket, "title": "Comment", "comment": TEXT, "public": True})


def _ticket(queue: int) -> str:
    about = {"queue": queue, "title": "Where is my parcel?", "priority": 3}
    return json.dumps({**about, "description": TEXT, "submitter_email": f"user-{NUMBER}@example.com"})


def _list(word: str = "") -> Call:
    """Return the request of the list's page for its rows, newest first."""
    query = {"filtering": {}, "sorting": "created", "sortreverse": True, "search_string": word}
    encoded = base64.b64encode(json.dumps(query).encode()).decode()
    return Call("GET", f"/datatables_ticket_list/{encoded}?length={PAGE_SIZE}")
