"""A conversion: reads all files into the spool, then writes the import lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from typing import BinaryIO, Final

from deskwire.commands.convert.chatwoot import Chatwoot
from deskwire.commands.convert.fields import readable
from deskwire.commands.convert.intercom import Intercom
from deskwire.commands.convert.parts import ExportSource
from deskwire.commands.convert.progress import ConversionProgress
from deskwire.commands.convert.reading import Unreadable, records
from deskwire.commands.convert.spool import Spool
from deskwire.commands.convert.tally import ConversionTally, Note
from deskwire.commands.convert.writing import ImportLineWriter
from deskwire.commands.convert.zendesk import Zendesk
from deskwire.commands.shell.output import visible

SOURCES: Final[Mapping[str, Callable[[], ExportSource]]] = {
    "chatwoot": Chatwoot,
    "intercom": Intercom,
    "zendesk": Zendesk,
}


def convert(
    source: ExportSource,
    files: Iterable[tuple[str, BinaryIO]],
    output: BinaryIO,
    tally: ConversionTally,
    *,
    by_email: bool,
    now: int,
    progress: ConversionProgress | None = None,
) -> None:
    """Convert files, given with their names.

    Args:
        now: milliseconds since the epoch.

    Raises UnfitFileError, OSError, and sqlite3.Error if the folder for temporary files is full.
    """
    progress = progress or ConversionProgress(None)
    with closing(Spool()) as spool:
        for name, file in files:
            for record in progress.counted(records(file), f"records of {visible(name)} read"):
                if isinstance(record, Unreadable):
                    tally.note(Note.unreadable, f"{name}, line {record.line}: {record.reason}")
                elif isinstance(record, dict):
                    for part in source.parts(readable(record), tally):
                        spool.keep(part)
                else:
                    tally.note(Note.unknown, f"{name}: {type(record).__name__}")
        writer = ImportLineWriter(source.name, spool, tally, by_email=by_email, now=now)
        output.writelines(progress.counted(writer.lines(), "lines written"))
