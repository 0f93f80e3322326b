"""Plain HTTP where TLS is spoken: an answer that says so, instead of a connection that breaks."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import h11
import trio

from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.http1 import phrase
from deskwire.engine.core.ids import new_id
from deskwire.http.api.problems import raw_problem

_DETAIL: Final = "This port speaks TLS: use https:// and wss://."


def speaks_http(first_byte: bytes) -> bool:
    """Tell whether a connection that begins with this byte is plain HTTP: a method, where TLS begins with 22."""
    return first_byte.isalpha()


async def told_to_use_tls(stream: trio.abc.Stream) -> None:
    """Answer whatever is being asked with 400 `tls_required`, and close. Raises BrokenResourceError."""
    await stream.send_all(_answer(new_id("req", wall_clock())))
    await stream.aclose()


def _answer(request_id: str) -> bytes:
    status = HTTPStatus.BAD_REQUEST
    headers, body = raw_problem(status, "tls_required", _DETAIL, request_id)
    headers.append((b"connection", b"close"))
    connection = h11.Connection(h11.SERVER)
    response = h11.Response(status_code=status, headers=headers, reason=phrase(status).encode())
    parts = (connection.send(part) for part in (response, h11.Data(data=body), h11.EndOfMessage()))
    return b"".join(part or b"" for part in parts)
