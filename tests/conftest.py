"""Fixtures that tests of several packages share."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

from deskwire.logs.setup import CHATTY
from tests.support.builders import InlineStore
from tests.support.database_connections import all_closed, note_connections
from tests.support.log_leaks import leaks, logs_of, plant_of
from tests.support.postgres import close_shared_server, fresh_database
from tests.support.selection import is_unit, nothing_started, watch_starts
from tests.support.shortcuts import copy_fresh_databases, trust_nobody, wait_for_answers
from tests.support.stores import KINDS, Kind, choose, choosing, chosen, forget_directories

# The time of an example depends on the load of the machine. A test that fails in `make test` fails in the next one too:
# only `make verify` and `make fuzz` try other examples in each run.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=os.environ.get("RANDOM_EXAMPLES") != "1",
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")

note_connections()
copy_fresh_databases()
trust_nobody()
wait_for_answers()
watch_starts()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: a long life, or a start of much else; `make verify` runs it")
    config.addinivalue_line("markers", "thorough: takes a second or so; `make unit` leaves it to `make test`")
    config.addinivalue_line(
        "markers", "s3: needs the S3 that `make verify` installs; `make test` runs it where that is there"
    )
    config.addinivalue_line("markers", "web: in a browser; `make web-all` runs it")
    config.addinivalue_line("markers", "journey: a main flow of a page, or a guarantee; `make web` runs it")
    config.addinivalue_line(
        "markers", "sqlite: about SQLite itself, or with it as a model; `--store postgres` leaves it out"
    )
    config.addinivalue_line("markers", "unit: starts no process and no listener; marked by itself")
    choose(config.getoption("store"))
    if config.getoption("reads") == "threaded":
        pytest.MonkeyPatch().setattr("deskwire.storage.sqlite.store.InlineQuery", _Nothing)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need nothing but this process."""
    for item in items:
        kind = _kind_of(item) or chosen()
        on_postgres = kind == "postgres"
        if on_postgres and item.get_closest_marker("sqlite") is not None:
            item.add_marker(pytest.mark.skip(reason="about SQLite itself"))
        if item.get_closest_marker("long") is None and not on_postgres and is_unit(item):
            item.add_marker("unit")


def _kind_of(item: pytest.Item) -> Kind | None:
    """The store of a test that is run on both."""
    kind: Kind | None = item.callspec.params.get("kind") if hasattr(item, "callspec") else None
    return kind if kind in KINDS else None


def pytest_collection_finish() -> None:
    """Leave what is collected out of the garbage collector's rounds, which took a tenth of the time."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """End the PostgreSQL server if a test has wanted one."""
    close_shared_server()


@pytest.fixture(autouse=True)
def _alone(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that was taken for a unit and starts something."""
    with nothing_started() if request.node.get_closest_marker("unit") else nullcontext():
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let all tests be run on a store that runs no query inline (ADR 1), and those of the port on PostgreSQL (ADR 59)."""
    said = "how the store runs inline queries; threaded: as all others, so that others' tasks run meanwhile"
    parser.addoption("--reads", choices=("inline", "threaded"), default="inline", help=said)
    parser.addoption(
        "--store", choices=KINDS, default="sqlite", help="the store that tests of the port run on"
    )


class _Nothing:
    """A class of which no query is an instance."""


@pytest.fixture(autouse=True)
def _closed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run the test on its store. Fail it if it leaves a database open; its fixtures have ended by then."""
    with all_closed(), choosing(_kind_of(request.node) or chosen()):
        yield
        forget_directories()


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """Restore the log of this process, which a command replaces when a test runs it here."""
    before, processors = structlog.get_config(), list(structlog.get_config()["processors"])
    configured, root = structlog.is_configured(), logging.getLogger()
    handlers, level = root.handlers, root.level
    chatty = {each: each.level for each in map(logging.getLogger, CHATTY)}
    if (
        not configured
    ):  # as the service does: the default shows the variables of a failure, credentials among them
        plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
        structlog.configure(processors=[*processors[:-1], plain])
    yield
    root.handlers = handlers
    root.setLevel(level)
    for each, before_level in chatty.items():
        each.setLevel(before_level)  # with `debug` they log each request, credentials included
    if configured:
        structlog.configure(**{**before, "processors": processors})
    else:
        structlog.reset_defaults()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that has made the service log a credential (ADR 25)."""
    report = yield
    if report.when == "teardown" and report.passed:
        directory = getattr(item, "funcargs", {}).get("tmp_path")
        said = "\n".join(text for _, text in report.sections)
        if isinstance(directory, Path):
            plant_of(directory)
            said += logs_of(directory)
        if found := sorted(set(leaks(said))):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid}: the log has {', '.join(found)}"
    return report


@pytest.fixture
def inline_store(tmp_path: Path) -> Iterator[InlineStore]:
    """A store on a fresh directory whose jobs run on the spot."""
    store = InlineStore(tmp_path)
    yield store
    store.close()


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """The URL of a fresh database on a real PostgreSQL server, with all its tables."""
    with fresh_database() as url:
        yield url


@pytest.fixture
def empty_postgres_url() -> Iterator[str]:
    """The URL of a fresh database on a real PostgreSQL server, without any table."""
    with fresh_database(migrated=False) as url:
        yield url
