"""The socket in the data directory by which commands reach the server that has it.

One order a connection: a line of JSON `{"operation", "arguments"}`, answered by a line `{"answer"}` or `{"refusal"}`.
Who can open the socket can read the directory, so there is nothing more to prove; other users are refused.
"""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson
import structlog
import trio

from deskwire.commands.admin.client import COMMAND_TIMEOUT_S, SOCKET_FILE, socket_address
from deskwire.commands.admin.context import AdminContext, refusal
from deskwire.commands.admin.operations import run_operation
from deskwire.engine.core.errors import BadRequest
from deskwire.engine.core.tasks.failure import contained

log: Final = structlog.get_logger(__name__)

ORDER_BYTES_MAX: Final = 64 * 1024
AT_ONCE: Final = 8
WAITING: Final = 128
"""Orders that are carried out side by side, and connections that wait for their turn."""


async def serve_orders(
    directory: Path, context: AdminContext, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Carry out orders that come through the directory's socket, until cancelled."""
    path = directory / SOCKET_FILE
    try:
        path.unlink(missing_ok=True)  # a crash's; the directory's lock says that nobody serves it
        with socket_address(directory) as address:
            listening = _bound(address)
    except OSError as error:  # a file system without sockets, or a path too long for one: all the rest works
        log.warning("admin.no_socket", reason=str(error))
        task_status.started()
        await trio.sleep_forever()
        return
    try:
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
        serve = partial(_serve, context, trio.CapacityLimiter(AT_ONCE))
        task_status.started()
        await trio.serve_listeners(serve, [listener])
    finally:
        path.unlink(missing_ok=True)


def _bound(address: str) -> socket.socket:
    """Make a listening socket that only this user can open."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listening.bind(address)
    except OSError:
        listening.close()
        raise
    finally:
        os.umask(before)
    listening.listen(WAITING)
    return listening


async def _serve(context: AdminContext, limiter: trio.CapacityLimiter, stream: trio.SocketStream) -> None:
    """Carry out the one order of a connection."""
    with (
        contained(lambda failure: log.error("admin.failed", exc_info=failure)),
        suppress(trio.BrokenResourceError),  # the command has gone
        trio.move_on_after(COMMAND_TIMEOUT_S),
    ):
        async with stream, limiter:
            user = _user_of(stream.socket)
            if user not in (0, os.geteuid()):
                return
            order = await _order(stream)
            if order is not None:
                await stream.send_all(orjson.dumps(await _respond(context.signed(user), order)) + b"\n")


async def _order(stream: trio.SocketStream) -> bytes | None:
    """Return the line with the order, None if it is too long or cut short."""
    line = bytearray()
    async for data in stream:
        line += data
        if line.endswith(b"\n"):
            return bytes(line)
        if len(line) > ORDER_BYTES_MAX:
            return None
    return None


async def _respond(context: AdminContext, line: bytes) -> dict[str, Any]:
    try:
        order: Any = orjson.loads(line)
        name, arguments = str(order["operation"]), orjson.dumps(order["arguments"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return {"refusal": refusal(BadRequest("This is no order."))}
    log.info("admin.order", operation=name)
    return await run_operation(context, name, arguments)


def _user_of(peer: trio.socket.SocketType) -> int:
    """Return the peer's user; where the system can't say, the file's mode lets in this process's own alone."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return os.geteuid()
    _, user, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return int(user)
