"""The control socket in the data directory, through which admin commands reach the running server.

Each connection carries one command: a JSON line `{"operation", "arguments"}` and a response line `{"answer"}` or `{"refusal"}`.
Only the server's own user and root are accepted. They can read the data directory anyway, so there is no other authentication.
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
from deskwire.commands.admin.operations import run_operation
from deskwire.engine.core.errors import BadRequest
from deskwire.engine.core.tasks.failure import contain_failures
from deskwire.program.admin_context import AdminContext, refusal

log: Final = structlog.get_logger(__name__)

COMMAND_BYTES_MAX: Final = 64 * 1024
CONCURRENT_COMMANDS_MAX: Final = 8
BACKLOG: Final = 128  # connections that wait for one of the CONCURRENT_COMMANDS_MAX commands to end


async def serve_commands(
    directory: Path, context: AdminContext, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Run the commands that arrive on the directory's socket, until cancelled."""
    path = directory / SOCKET_FILE
    try:
        path.unlink(missing_ok=True)  # left by a crash; the directory's lock excludes another server
        with socket_address(directory) as address:
            listening = _bound(address)
    except OSError as error:  # no sockets on this file system, or too long a path; the service works without
        log.warning("admin.no_socket", reason=str(error))
        task_status.started()
        await trio.sleep_forever()
        return
    try:
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
        serve = partial(_serve, context, trio.CapacityLimiter(CONCURRENT_COMMANDS_MAX))
        task_status.started()
        await trio.serve_listeners(serve, [listener])
    finally:
        path.unlink(missing_ok=True)


def _bound(address: str) -> socket.socket:
    """Return a listening socket that only this user can open."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listening.bind(address)
    except OSError:
        listening.close()
        raise
    finally:
        os.umask(before)
    listening.listen(BACKLOG)
    return listening


async def _serve(context: AdminContext, limiter: trio.CapacityLimiter, stream: trio.SocketStream) -> None:
    """Run the one command of a connection."""
    with (
        contain_failures(lambda failure: log.error("admin.failed", exc_info=failure)),
        suppress(trio.BrokenResourceError),  # the client has disconnected
        trio.move_on_after(COMMAND_TIMEOUT_S),
    ):
        async with stream, limiter:
            user = _user_of(stream.socket)
            if user not in (0, os.geteuid()):
                return
            command = await _read_command(stream)
            if command is not None:
                await stream.send_all(orjson.dumps(await _respond(context.signed(user), command)) + b"\n")


async def _read_command(stream: trio.SocketStream) -> bytes | None:
    """Return the line with the command, None if it is too long or incomplete."""
    line = bytearray()
    async for data in stream:
        line += data
        if line.endswith(b"\n"):
            return bytes(line)
        if len(line) > COMMAND_BYTES_MAX:
            return None
    return None


async def _respond(context: AdminContext, line: bytes) -> dict[str, Any]:
    try:
        command: Any = orjson.loads(line)
        name, arguments = str(command["operation"]), orjson.dumps(command["arguments"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return {"refusal": refusal(BadRequest("This is not a command."))}
    log.info("admin.command", operation=name)
    return await run_operation(context, name, arguments)


def _user_of(peer: trio.socket.SocketType) -> int:
    """Return the peer's user id. Without SO_PEERCRED, the file's mode admits only this process's user."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return os.geteuid()
    _, user, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return int(user)
