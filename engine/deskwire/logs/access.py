"""The access log, with a line per request. JSON lines are written directly, which is faster than the usual processors."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import structlog

from deskwire.engine.core.clock import iso, wall_clock
from deskwire.engine.core.http1 import METHODS
from deskwire.logs.writer import ROOM

_REQUESTS: Final = "deskwire.http"
_ROOM: Final = ROOM // 2
"""Maximum characters queued before a request's line is dropped; other lines may use the whole queue."""

_requests: Final = structlog.get_logger(_REQUESTS)


class _Direct:
    """The direct writer; None if request lines take the usual path."""

    write: Callable[[str, int], object] | None = None


def write_with(write: Callable[[str, int], object] | None) -> None:
    """Write request lines directly with `write`, as JSON; None for the usual path.

    Args:
        write: receives a line, and the maximum number of queued characters for it to be accepted.
    """
    _Direct.write = write


def log_request(method: str, route: str | None, status: int, seconds: float, request_id: str) -> None:
    """Log the response to a request.

    There are thousands per second, and none of these values except an unusual method can hold a credential or a
    stranger's text. So a JSON line is built directly, in a fifteenth of the usual time.
    """
    ms = round(seconds * 1000, 1)
    write = _Direct.write
    if write is None or method not in METHODS:
        _requests.info(
            "http.request", method=method, route=route, status=status, ms=ms, request_id=request_id
        )
        return
    write(
        f'{_beginning(method, route, status)}{ms},"request_id":"{request_id}","timestamp":"{iso(wall_clock())}"}}\n',
        _ROOM,
    )


@lru_cache(maxsize=1024)  # a route has few different outcomes
def _beginning(method: str, route: str | None, status: int) -> str:
    """Return the start of the lines of such responses, up to the milliseconds."""
    line = {
        "event": "http.request",
        "logger": _REQUESTS,
        "level": "info",
        "method": method,
        "route": route,
        "status": status,
    }
    return f'{json.dumps(line, separators=(",", ":"))[:-1]},"ms":'
