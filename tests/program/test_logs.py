"""The log: two forms, one path for the entries of all libraries, and no credentials in it."""

import errno
import io
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest
import structlog
import trio

from deskwire.config.settings import LogFormat
from deskwire.http.api.pipeline import REQUEST_ID
from deskwire.logs import access
from deskwire.logs import setup as logs


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _warnings_as_they_were() -> Iterator[None]:
    shown = warnings.showwarning
    yield
    logging.captureWarnings(capture=False)
    warnings.showwarning = shown


@pytest.fixture
def stream() -> io.StringIO:
    """Return the stream that the log goes to: JSON, from `info` on."""
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


def test_standard_librarys_entries_use_the_same_path(stream: io.StringIO) -> None:
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


def test_values_that_json_does_not_know_are_written_too(stream: io.StringIO) -> None:
    structlog.get_logger().info("odd", number=2**80, lone="\udc80", path=io, keys={(1, 2): {3}})
    (entry,) = entries(stream)
    assert entry["number"] == 2**80
    assert entry["keys"] == {"(1, 2)": [3]}


@pytest.mark.parametrize("form", ["text", "json"])
def test_text_of_a_client_begins_no_line_and_moves_no_cursor(form: LogFormat) -> None:
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


class Full(io.StringIO):
    """Takes nothing while it is `full`."""

    full = False

    def write(self, text: str) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "no space left")
        return super().write(text)


def _tell(number: int) -> None:
    access.log_request("GET", "/healthz", 200, 0.001, f"req_{number}")


def test_unwritable_log_stops_no_work() -> None:
    stream = Full()
    logs.configure("json", "info", stream)
    stream.full = True
    _tell(1)
    stream.full = False
    _tell(2)
    assert [entry["request_id"] for entry in entries(stream)] == ["req_2"]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[TextIO]:
    """Open the real file that a service's log goes to."""
    with (tmp_path / "serve.log").open("w+") as made:
        yield made


def test_lines_of_all_loggers_are_written_in_order_by_one_thread(file: TextIO) -> None:
    with logs.written_behind("json", "info", file, file.fileno()):
        for number in range(0, 300, 3):
            _tell(number)
            structlog.get_logger().info("own", request_id=f"req_{number + 1}")
            logging.getLogger("quart").info("foreign", extra={"request_id": f"req_{number + 2}"})
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("odd", RuntimeWarning, stacklevel=1)
    *said, warned = map(json.loads, Path(file.name).read_text().splitlines())
    assert [entry["request_id"] for entry in said] == [f"req_{number}" for number in range(300)]
    assert (warned["logger"], "RuntimeWarning: odd" in warned["event"]) == ("py.warnings", True)


def test_messages_to_the_operator_keep_the_logs_order(file: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", file)
    with logs.written_behind("json", "info", file, file.fileno()):
        structlog.get_logger().info("before")
        logs.say("It can't start.", sys.stderr)
    assert Path(file.name).read_text().splitlines()[1:] == ["It can't start."]


def test_a_notice_of_lost_lines_has_the_logs_form(file: TextIO) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    kept = os.dup(file.fileno())
    os.dup2(full, file.fileno())
    os.close(full)
    with logs.written_behind("text", "info", file, file.fileno()):
        structlog.get_logger().info("lost")
        while logs.dropped() == 0:
            pass  # the thread's turn
        os.dup2(kept, file.fileno())
        structlog.get_logger().info("kept")
    os.close(kept)
    notice, line = Path(file.name).read_text().splitlines()
    assert re.search(r"warning .* log.lines_lost .* lines=1 since=\d{4}-", notice)
    assert "kept" in line
