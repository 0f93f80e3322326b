"""The log: two forms, one way for everybody's entries, and no credentials in it."""

import errno
import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
import trio
import trio.testing

from deskwire import logs
from deskwire.http.request_id import REQUEST_ID
from deskwire.listening import LogFormat


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    levels = {name: logging.getLogger(name).level for name in logs.CHATTY}
    yield
    structlog.reset_defaults()
    root.handlers = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


@pytest.fixture
def stream() -> io.StringIO:
    """Where the log goes: JSON, from `info` on."""
    made = io.StringIO()
    logs.configure("json", "info", made)
    return made


def entries(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_entry_is_one_line_of_json_with_time_level_and_fields(stream: io.StringIO) -> None:
    structlog.get_logger("deskwire.test").info("started", port=8080)
    (entry,) = entries(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry.pop("timestamp"))
    assert entry == {"event": "started", "port": 8080, "level": "info", "logger": "deskwire.test"}


def test_the_standard_librarys_entries_take_the_same_way(stream: io.StringIO) -> None:
    logging.getLogger("hypercorn.error").warning("lost %s", "client", extra={"peer": "::1"})
    (entry,) = entries(stream)
    assert (entry["event"], entry["logger"], entry["level"]) == ("lost client", "hypercorn.error", "warning")
    assert entry["peer"] == "::1"


async def test_the_request_id_of_the_own_task_is_in_every_entry(stream: io.StringIO) -> None:
    async def request(number: int) -> None:
        REQUEST_ID.set(f"req_{number}")
        await trio.lowlevel.checkpoint()
        structlog.get_logger("own").info("own", number=number)
        logging.getLogger("quart").info("foreign", extra={"number": number})

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(request, number)
    assert len(entries(stream)) == 6
    assert all(entry["request_id"] == f"req_{entry['number']}" for entry in entries(stream))


@pytest.mark.parametrize(
    ("form", "stream", "readable"),
    [
        ("auto", Terminal(), True),
        ("auto", io.StringIO(), False),
        ("text", io.StringIO(), True),
        ("json", Terminal(), False),
    ],
)
def test_a_terminal_gets_text_and_everything_else_json(
    form: LogFormat, stream: io.StringIO, readable: bool
) -> None:
    logs.configure(form, "info", stream)
    structlog.get_logger().info("hello")
    assert stream.getvalue().startswith("{") != readable
    assert "hello" in stream.getvalue()


def test_text_has_colours_on_a_terminal_only() -> None:
    terminal, file = Terminal(), io.StringIO()
    for each in (terminal, file):
        logs.configure("text", "info", each)
        structlog.get_logger().warning("hello")
    assert "\x1b[" in terminal.getvalue()
    assert "\x1b[" not in file.getvalue()


def test_entries_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    logs.configure("json", "warning", stream)
    structlog.get_logger().info("own")
    logging.getLogger("quart").info("foreign")
    structlog.get_logger().warning("shown")
    assert [entry["event"] for entry in entries(stream)] == ["shown"]


@pytest.mark.parametrize("name", logs.CHATTY)
def test_a_line_for_each_request_is_written_with_debug_only(name: str) -> None:
    for level, count in (("info", 0), ("debug", 1)):
        stream = io.StringIO()
        logs.configure("json", "info" if level == "info" else "debug", stream)
        logging.getLogger(name).info("HTTP request")
        assert len(entries(stream)) == count


def test_a_second_configuration_replaces_the_first_one(stream: io.StringIO) -> None:
    log = structlog.get_logger("made before")
    second = io.StringIO()
    logs.configure("json", "debug", second)
    log.debug("hello")
    assert not stream.getvalue()
    assert len(entries(second)) == 1


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_credential_gets_through_in_fields_message_or_context(form: LogFormat) -> None:
    stream = io.StringIO()
    logs.configure(form, "info", stream)
    with structlog.contextvars.bound_contextvars(api_token="hunter2"):
        log = structlog.get_logger()
        log.info(
            "key sk_hunter2", headers={"Authorization": "Bearer hunter2"}, body=[{"password": "hunter2"}]
        )
        logging.getLogger("httpx").warning("GET %s", "/x?token=hunter2", extra={"secret": "hunter2"})
    assert "[redacted]" in stream.getvalue()
    assert "hunter2" not in stream.getvalue()


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_traceback_is_written_without_the_credentials_in_it(form: LogFormat) -> None:
    stream = io.StringIO()
    logs.configure(form, "info", stream)
    cause = ValueError("Authorization: Bearer hunter2")
    cause.add_note("{'password': 'hunter2'}")
    try:
        raise ExceptionGroup("whsec_hunter2", [cause])
    except* ValueError as group:
        structlog.get_logger().error("own", exc_info=group)
        logging.getLogger("quart").error("foreign", exc_info=group)
    assert stream.getvalue().count("test_logs.py") == 2
    assert stream.getvalue().count("ExceptionGroup: [redacted]") == 2
    assert "hunter2" not in stream.getvalue()


def test_values_that_json_does_not_know_are_written_all_the_same(stream: io.StringIO) -> None:
    structlog.get_logger().info("odd", number=2**80, lone="\udc80", path=io, keys={(1, 2): {3}})
    (entry,) = entries(stream)
    assert entry["number"] == 2**80
    assert entry["keys"] == {"(1, 2)": [3]}


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_a_stranger_has_written_begins_no_line_and_moves_no_cursor(form: LogFormat) -> None:
    made = io.StringIO()
    logs.configure(form, "info", made)
    structlog.get_logger().info("said", text="a\n[error] forged\r\x1b[2K\u2028b")
    try:
        raise ValueError("x\x1b[2Ky")
    except ValueError:
        structlog.get_logger().exception("failed")
    shown = made.getvalue()
    assert "\x1b" not in shown
    assert "\r" not in shown
    assert not [line for line in shown.splitlines() if line.startswith("[error]")]
    assert "Traceback" in shown


class Counting(io.StringIO):
    """Counts what is written to it, and takes nothing while it is `full`."""

    writes = 0
    full = False

    def write(self, text: str) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "no space left")
        self.writes += 1
        return super().write(text)


def _tell(count: int) -> None:
    for number in range(count):
        logs.tell_request("GET", "/healthz", 200, 0.001, f"req_{number}")


async def test_lines_about_requests_of_one_moment_are_written_together(nursery: trio.Nursery) -> None:
    stream = Counting()
    logs.configure("json", "info", stream)
    _tell(1)
    assert (stream.writes, len(entries(stream))) == (1, 1)  # nobody writes behind yet

    nursery.start_soon(logs.write_requests)
    await trio.testing.wait_all_tasks_blocked()
    _tell(20)
    assert len(entries(stream)) == 1
    await trio.testing.wait_all_tasks_blocked()
    assert stream.writes == 2
    assert [entry["request_id"] for entry in entries(stream)[1:]] == [f"req_{n}" for n in range(20)]


async def test_what_waits_at_the_end_is_written() -> None:
    stream = Counting()
    logs.configure("json", "info", stream)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(logs.write_requests)
        await trio.testing.wait_all_tasks_blocked()
        _tell(3)
        nursery.cancel_scope.cancel()
    assert len(entries(stream)) == 3
    _tell(1)
    assert len(entries(stream)) == 4


async def test_a_log_that_can_not_be_written_ends_nothing(nursery: trio.Nursery) -> None:
    stream = Counting()
    logs.configure("json", "info", stream)
    stream.full = True
    _tell(1)
    nursery.start_soon(logs.write_requests)
    await trio.testing.wait_all_tasks_blocked()
    _tell(2)
    await trio.testing.wait_all_tasks_blocked()
    stream.full = False
    _tell(1)
    await trio.testing.wait_all_tasks_blocked()
    assert [entry["request_id"] for entry in entries(stream)] == ["req_0"]
