"""Calls of a running service by a short-lived command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from deskwire.commands.shell.refusals import RefusedCommand

if TYPE_CHECKING:
    from deskwire.commands.api_client.access import ServiceAccess
    from deskwire.commands.api_client.service import Service

T = TypeVar("T")


def call(
    access: ServiceAccess, work: Callable[[Service], Awaitable[T]], fields: Mapping[str, str] | None = None
) -> T:
    """Return the result of the calls. Raises ClickException with the reason, which ends the program with status 1.

    Args:
        fields: parameters of the command by the names of the body's fields, where they differ.
    """
    import trio

    from deskwire.commands.api_client import service as api
    from deskwire.commands.shell.refusals import as_options

    async def run() -> T:
        async with api.Service(access) as service:
            return await work(service)

    try:
        return trio.run(run)
    except api.CallRefused as error:
        problems = as_options(error.problems, fields or {})
        raise RefusedCommand("\n".join(problems) or str(error), error.code) from error
    except api.ServiceError as error:
        raise RefusedCommand(str(error), None) from error
