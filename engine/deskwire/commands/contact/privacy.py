"""Export and erasure of a contact: the export is streamed to a file or stdout, the erasure is repeated until it is done."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import click
import trio

from deskwire.commands.api_client.service import CallRefused, Service, ServiceUnavailable
from deskwire.engine.core.values import ProgressReporter


async def export_contact(service: Service, path: str, output: Path | None, tell: ProgressReporter) -> None:
    """Write the contact's export. Raises ServiceError, and ClickException if the file can't be written.

    A file appears at `output` only when it is complete.
    """
    if output is None:
        await _copied(service, path, sys.stdout.buffer, tell)
        return
    scratch = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            await _copied(service, path, file, tell)
        scratch.replace(output)
    except OSError as error:
        raise click.ClickException(f"{output} can't be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)


async def _copied(service: Service, path: str, into: BinaryIO, tell: ProgressReporter) -> None:
    size = 0
    async for piece in service.pieces(f"{path}/export"):
        into.write(piece)
        size += len(piece)
        tell(f"Exporting: {size:,} bytes")
    into.flush()


_RESPONSE_TIMEOUT_S: Final = 30.0  # the service responds within 20 seconds and continues the erasure
_RETRY_DELAY_S: Final = 10.0
_UNDER_WAY: Final = "erasure_under_way"


async def erase_contact(service: Service, path: str, tell: ProgressReporter) -> dict[str, Any]:
    """Erase the contact, and return the last response. Raises ServiceError."""
    began = False
    while True:
        tell("Erasing")
        try:
            return dict(await service.delete(path, _RESPONSE_TIMEOUT_S))
        except ServiceUnavailable as away:
            if away.code != _UNDER_WAY:
                raise
            began = True
            await trio.sleep(away.retry_after_s or _RETRY_DELAY_S)
        except CallRefused as refusal:
            if not began or refusal.code != "contact_not_found":
                raise
            return {"id": None, "deleted": True}  # the erasure ended between two calls
