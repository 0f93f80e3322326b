"""An export as it comes, piece by piece, to the standard output or to a file that is whole or not there."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import click

from deskwire.commands.api_client.service import Service
from deskwire.engine.core.values import ProgressReporter


async def exported(service: Service, path: str, output: Path | None, tell: ProgressReporter) -> None:
    """Write the export of the contact at this path. Raises ServiceError, and ClickException if the file can't be written."""
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
