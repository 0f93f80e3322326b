"""The configuration of the log: one line per event on stderr, readable on a terminal and JSON otherwise.

Entries of structlog and the standard library's `logging` (hypercorn, quart, httpx) get the same processing: context
variables such as the request's id, level, UTC time, traceback as text, redaction, rendering.
"""

import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from deskwire.config.settings import LogFormat, LogLevel
from deskwire.engine.core.clock import iso, wall_clock
from deskwire.logs import access
from deskwire.logs.redaction import redacted
from deskwire.logs.repeated import RepeatedEvents
from deskwire.logs.writer import LineWriter, Lost

LEVELS: Final[dict[LogLevel, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
END_TIMEOUT_S: Final = 2.0  # for a reader of the log to take the last lines

CHATTY: Final = ("httpx", "httpcore", "hypercorn.access")  # log each request; enabled only with `debug`


class _Behind:
    """The log's writer thread; None if there is none."""

    writer: LineWriter | None = None


_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_WITH_LINES: Final = frozenset({"exception", "stack"})


def configure(log_format: LogFormat, level: LogLevel, stream: TextIO) -> None:
    """Send every log entry of the process to `stream`, replacing an earlier configuration.

    Args:
        log_format: `auto` means `text` for a terminal and `json` otherwise.
        level: the lowest severity that is logged.
        stream: stderr, since stdout has the commands' own output.
    """
    text = _is_text(log_format, stream)
    _configure(logging.StreamHandler(stream), _formatter(stream, text=text), LEVELS[level])
    _Behind.writer = None
    access.write_with(None if text or LEVELS[level] > logging.INFO else partial(_write_now, stream))


@contextmanager
def written_behind(log_format: LogFormat, level: LogLevel, stream: TextIO, descriptor: int) -> Iterator[None]:
    """Configure the log of a service with a writer thread, so that a slow reader can't block the service (ADR 38).

    At the end, queued lines are written if the reader takes them within two seconds.

    Args:
        descriptor: the file descriptor of `stream`.
    """
    text = _is_text(log_format, stream)
    formatter = _formatter(stream, text=text)
    writer = LineWriter(descriptor, wall_clock, partial(_notice, formatter))
    _configure(logging.StreamHandler(writer), formatter, LEVELS[level])
    logging.captureWarnings(capture=True)
    _Behind.writer = writer
    access.write_with(None if text or LEVELS[level] > logging.INFO else writer.write)
    try:
        yield
    finally:
        writer.close(END_TIMEOUT_S)
        logging.captureWarnings(capture=False)
        _Behind.writer = None
        access.write_with(None)


def say(text: str, stream: TextIO) -> None:
    """Write a line for a person unchanged; on stderr in the order of the log. A slow reader blocks it only briefly."""
    if _Behind.writer is None:
        print(text, file=stream, flush=True)
    elif stream is sys.stderr:
        _Behind.writer.write(f"{text}\n")
    else:
        writer = LineWriter(stream.fileno(), wall_clock, str)
        writer.write(f"{text}\n")
        writer.close(END_TIMEOUT_S)


def dropped() -> int:
    """Return the number of log lines that were dropped because no reader took them in time."""
    return 0 if _Behind.writer is None else _Behind.writer.dropped


def _write_now(stream: TextIO, line: str, _room: int) -> None:
    with suppress(OSError):  # a full disk or a closed pipe must not affect requests
        stream.write(line)
        stream.flush()


def _is_text(log_format: LogFormat, stream: TextIO) -> bool:
    return log_format == "text" or (log_format == "auto" and stream.isatty())


def _formatter(stream: TextIO, *, text: bool) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*_shared(), structlog.stdlib.ExtraAdder()],
        processors=[*_finishing(), *(_text_renderers(stream) if text else (_json_renderer(),))],
    )


def _notice(formatter: logging.Formatter, lost: Lost) -> str:
    """Return the line that reports dropped lines."""
    entry = {
        "msg": "log.lines_lost",
        "name": "deskwire.log",
        "levelno": logging.WARNING,
        "levelname": "WARNING",
    }
    since = iso(lost.since)
    return f"{formatter.format(logging.makeLogRecord({**entry, 'lines': lost.lines, 'since': since}))}\n"


def _shared() -> list[Processor]:
    """Return the processors that run in the task of the entry, where its context variables are set."""
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        timestamped,
    ]


def _finishing() -> list[Processor]:
    return [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,  # before the redaction, which also covers tracebacks
        without_secrets,
    ]


def _configure(handler: logging.Handler, formatter: logging.Formatter, level: int) -> None:
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.DEBUG if level == logging.DEBUG else logging.WARNING)
    limited = () if level == logging.DEBUG else (RepeatedEvents(),)
    structlog.configure(
        processors=[*limited, *_shared(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,  # modules' loggers use a later configuration, which tests need
    )


def timestamped(_logger: WrappedLogger, _method: str, entry: EventDict) -> EventDict:
    """Add `timestamp` in the API's format: ISO 8601, UTC, milliseconds, `Z` (decisions 1)."""
    entry["timestamp"] = iso(wall_clock())
    return entry


def without_secrets(_logger: WrappedLogger, _method: str, entry: EventDict) -> EventDict:
    """Replace text that looks like a credential, and values named like one, by `[redacted]`."""
    clean = redacted(entry)
    assert isinstance(clean, dict)
    return clean


def without_controls(_logger: WrappedLogger, _method: str, entry: EventDict) -> EventDict:
    """Escape control characters, so that a stranger's text can't start a line or move the cursor.

    Tracebacks keep their line breaks. JSON needs no such escapes.
    """
    return {
        name: _lines_visible(value) if name in _WITH_LINES else _visible(value)
        for name, value in entry.items()
    }


def _visible(value: object) -> object:
    return _CONTROL.sub(_escaped, value) if isinstance(value, str) else value


def _lines_visible(value: object) -> object:
    return "\n".join(_CONTROL.sub(_escaped, line) for line in str(value).split("\n")) if value else value


def _escaped(match: re.Match[str]) -> str:
    return repr(match[0])[1:-1]


def _text_renderers(stream: TextIO) -> tuple[Processor, ...]:
    shown = structlog.dev.ConsoleRenderer(
        colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    return without_controls, shown


def _json_renderer() -> Processor:
    # The standard library's encoder accepts every int and str, because a log line may never fail.
    return structlog.processors.JSONRenderer(serializer=json.dumps)
