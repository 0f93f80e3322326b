"""The log: one line an event on stderr, readable on a terminal and JSON otherwise.

Entries of structlog and of the standard library's `logging` (hypercorn, quart, httpx) take the same way: context
variables such as the request's id, level, UTC time, traceback as text, redaction, rendering.
"""

import json
import logging
import re
from contextlib import suppress
from functools import lru_cache
from typing import Final, TextIO

import structlog
import trio
from structlog.typing import EventDict, Processor, WrappedLogger

from deskwire.engine.clock import iso, wall_clock
from deskwire.listening import LogFormat, LogLevel
from deskwire.redaction import redacted

LEVELS: Final[dict[LogLevel, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
CHATTY: Final = ("httpx", "httpcore", "hypercorn.access")  # a line for each request; only with `debug`

_REQUESTS: Final = "deskwire.http"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_requests: Final = structlog.get_logger(_REQUESTS)


class _Direct:
    """Where lines about requests are written without a detour; None if they go the usual way.

    With `news` there is a task that writes what is `waiting`.
    """

    stream: TextIO | None = None
    waiting: Final[list[str]] = []
    news: trio.Event | None = None


_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_WITH_LINES: Final = frozenset({"exception", "stack"})


def configure(log_format: LogFormat, level: LogLevel, stream: TextIO) -> None:
    """Send every log entry of the process to `stream`, replacing what was configured before.

    Args:
        log_format: `auto` is `text` if `stream` is a terminal and `json` otherwise.
        level: least severity that is logged.
        stream: the program gives stderr, since stdout belongs to the commands' own output.
    """
    text = log_format == "text" or (log_format == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_shared(), structlog.stdlib.ExtraAdder()],
            processors=[*_finishing(), *(_text_renderers(stream) if text else (_json_renderer(),))],
        )
    )
    _configure_stdlib(handler, LEVELS[level])
    _Direct.stream = None if text or LEVELS[level] > logging.INFO else stream
    structlog.configure(
        processors=[*_shared(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,  # so that modules' loggers follow a later configure (tests do that)
    )


def tell_request(method: str, route: str | None, status: int, seconds: float, request_id: str) -> None:
    """Log an answer to a request.

    There are thousands a second, and none of these values can hold a credential or what a stranger wrote, but for
    an unusual method. So as JSON they are made without a detour, for a fifteenth of what an entry takes on its usual
    way, and written together with others of the same moment where `write_requests` runs.
    """
    ms = round(seconds * 1000, 1)
    stream = _Direct.stream
    if stream is None or method not in _METHODS:
        _requests.info(
            "http.request", method=method, route=route, status=status, ms=ms, request_id=request_id
        )
        return
    waiting = _Direct.waiting
    waiting.append(
        f'{_beginning(method, route, status)}{ms},"request_id":"{request_id}","timestamp":"{_now()}"}}\n'
    )
    if _Direct.news is None:
        _write_waiting(stream)
    elif len(waiting) == 1:
        _Direct.news.set()


@lru_cache(maxsize=1024)  # routes have few outcomes
def _beginning(method: str, route: str | None, status: int) -> str:
    """What the lines of all such answers begin with; what comes next is the milliseconds."""
    line = {
        "event": "http.request",
        "logger": _REQUESTS,
        "level": "info",
        "method": method,
        "route": route,
        "status": status,
    }
    return f'{json.dumps(line, separators=(",", ":"))[:-1]},"ms":'


async def write_requests() -> None:
    """Write the lines about requests, in one piece those that came while other tasks ran, until cancelled."""
    try:
        while True:
            _Direct.news = trio.Event()
            await _Direct.news.wait()
            if _Direct.stream is not None:
                _write_waiting(_Direct.stream)
    finally:
        _Direct.news = None
        if _Direct.stream is not None:
            _write_waiting(_Direct.stream)


def _write_waiting(stream: TextIO) -> None:
    lines = "".join(_Direct.waiting)
    _Direct.waiting.clear()
    with suppress(OSError):  # a full disk or a reader that is gone: of no concern to those who are answered
        stream.write(lines)
        stream.flush()


def _shared() -> list[Processor]:
    """What happens where an entry is made, in its own task: only there are its context variables right."""
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
        structlog.processors.format_exc_info,  # to text before the redaction, which reads tracebacks too
        without_secrets,
    ]


def _configure_stdlib(handler: logging.Handler, level: int) -> None:
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.DEBUG if level == logging.DEBUG else logging.WARNING)


def timestamped(_logger: WrappedLogger, _method: str, entry: EventDict) -> EventDict:
    """Add `timestamp`: ISO 8601, UTC, milliseconds, `Z`; as the API writes times (decisions 1)."""
    entry["timestamp"] = _now()
    return entry


def _now() -> str:
    return iso(wall_clock())


def without_secrets(_logger: WrappedLogger, _method: str, entry: EventDict) -> EventDict:
    """Replace whatever looks like a credential, or is named like one, by `[redacted]`."""
    clean = redacted(entry)
    assert isinstance(clean, dict)
    return clean


def without_controls(_logger: WrappedLogger, _method: str, entry: EventDict) -> EventDict:
    """Show control characters as escapes: what a stranger has written begins no line and moves no cursor.

    Tracebacks keep their lines. JSON needs none of this.
    """
    return {
        name: _lines_visible(value) if name in _WITH_LINES else _visible(value)
        for name, value in entry.items()
    }


def _visible(value: object) -> object:
    return _CONTROL.sub(_escaped, value) if isinstance(value, str) else value


def _lines_visible(value: object) -> object:
    return "\n".join(_CONTROL.sub(_escaped, line) for line in str(value).split("\n")) if value else value


def _escaped(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]


def _text_renderers(stream: TextIO) -> tuple[Processor, ...]:
    shown = structlog.dev.ConsoleRenderer(
        colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    return without_controls, shown


def _json_renderer() -> Processor:
    # The standard library's encoder: it takes every int and every str, and a log line may never fail.
    return structlog.processors.JSONRenderer(serializer=json.dumps)
