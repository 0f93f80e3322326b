"""The source of a copy: a locked data directory or an unpacked backup, with the installation's secrets."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click

from deskwire.config.config import Config
from deskwire.engine.core.secret import Secrets
from deskwire.engine.uploads.ports import FileContent
from deskwire.program.secret_file import SecretError, present_secrets
from deskwire.storage.check.credentials import broken_seals
from deskwire.storage.file_stores import open_files
from deskwire.storage.sqlite.backup.archive import DATABASE
from deskwire.storage.sqlite.backup.manifest import fitting
from deskwire.storage.sqlite.backup.snapshot import opened
from deskwire.storage.sqlite.backup.unpack import read_archive
from deskwire.storage.sqlite.database import lock_when_free, migrate, refuse_upgrade
from deskwire.storage.sqlite.directory import FILE_NAME, SECRET_FILE, DataDirectoryError, require_whole
from deskwire.storage.sqlite.installation import require_own_database

_PIECE = 1 << 20


@contextmanager
def opened_source(source: Path, config: Config) -> Iterator[tuple[Path, Secrets]]:
    """Yield the directory with database and uploads, unchanged while the context is open, and the installation's secrets."""
    if source.is_dir():
        if not (source / FILE_NAME).exists():
            raise DataDirectoryError(f"There is no Deskwire in the data directory {source}.")
        lock = lock_when_free(source)
        try:
            require_whole(source)
            require_own_database(source)
            migrate(source / FILE_NAME, lambda name: refuse_upgrade(source / FILE_NAME, name))
            given, own = _given(source, config), present_secrets(source, None)
            if given is not None and own is not None and own.current not in given.known:
                raise _wrong_secret(f"the one in {source / SECRET_FILE}")
            _require_opened(source / FILE_NAME, given)
            yield source, _known(given or own, source)
        finally:
            lock.release()
        return
    with tempfile.TemporaryDirectory(dir=source.parent, prefix=".deskwire-copy-") as scratch:
        yield Path(scratch), _unpacked(source, config, Path(scratch))


def _unpacked(backup: Path, config: Config, into: Path) -> Secrets:
    given = _given(into, config)
    contents = read_archive(backup, given, into)
    wanted = contents.manifest.secret_id
    if given is not None and wanted is not None and fitting(given.known, wanted) is None:
        raise _wrong_secret(f"that of the installation which {backup} is of")
    (into / DATABASE).rename(into / FILE_NAME)
    migrate(into / FILE_NAME)
    _require_opened(into / FILE_NAME, given)
    return _known(Secrets.read(contents.secret) if contents.secret else given, backup)


def _given(directory: Path, config: Config) -> Secrets | None:
    """Return the secrets of the settings; None without any."""
    return (
        None if config.secret is None else present_secrets(directory, config.secret, config.secret_previous)
    )


def _wrong_secret(right: str) -> SecretError:
    return SecretError(
        f"DESKWIRE_SECRET is not {right}, and another secret can't decrypt the webhooks' signing secrets: set it to that one, or "
        "unset it for the copy if the source includes the secret. Nothing was copied."
    )


def _require_opened(database: Path, given: Secrets | None) -> None:
    """Raise SecretError if the settings' secret can't decrypt the installation's sealed data."""
    if given is None:
        return
    with closing(opened(database, writing=False)) as connection:
        broken = list(broken_seals(connection, given))
    if broken:
        raise SecretError(
            f"DESKWIRE_SECRET can't decrypt the signing secrets of {len(broken):,} webhooks. Set it to the installation's secret, "
            "and DESKWIRE_SECRET_PREVIOUS to the previous one during a replacement; remove webhooks whose secret is lost "
            "before the copy. Nothing was copied."
        )


def _known(secrets: Secrets | None, source: Path) -> Secrets:
    if secrets is None:
        raise SecretError(f"{source} does not include its secret: set DESKWIRE_SECRET to it.")
    return secrets


def putting(place: str, folder: Path) -> Callable[[FileContent, Path], None] | None:
    """Return a function that stores an upload's file; None for the database, which the copy fills itself."""
    if place == "database":
        return None

    files = open_files(place, folder, None)

    def put(content: FileContent, path: Path) -> None:
        draft = files.draft()
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                draft.write(piece)
        if draft.finish() != content.sha256:
            draft.discard()
            raise click.ClickException(f"The upload {path} differs from the bytes that were uploaded.")
        draft.keep(content)

    return put
