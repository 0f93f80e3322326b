"""`deskwire copy`: from a data directory, or a backup of one, into an empty PostgreSQL database."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deskwire.commands.database.access import given, given_url, refusals
from deskwire.commands.shell.help import Command
from deskwire.commands.shell.options import SettingOption, json_option
from deskwire.commands.shell.output import print_json
from deskwire.config.settings import SETTINGS, Config
from deskwire.engine.core.secret import Secrets
from deskwire.program.secret_file import SECRET_FILE, SecretError, present_secrets

if TYPE_CHECKING:
    from deskwire.engine.uploads.ports import Content
    from deskwire.storage.postgres.copying.run import Copied

_PIECE = 1 << 20
_OF_NODES = {SETTINGS[name].variable for name in ("database_url", "files", "node", "require_sync_standby")}
"""Variables that are about where the copy goes; the source is on no database."""


@click.command(
    "copy",
    cls=Command,
    examples=[
        "deskwire copy --from ./data",
        "deskwire copy --from backup.tar --files s3://bucket/uploads",
    ],
)
@click.option(
    "--from",
    "source",
    required=True,
    type=click.Path(exists=True, path_type=Path),
    help="Data directory of a server that is stopped, or a backup of one.",
)
@click.option(
    "--to",
    "url",
    cls=SettingOption,
    setting=SETTINGS["database_url"],
    metavar="URL",
    help="URL of the empty PostgreSQL database.",
)
@click.option(
    "--files",
    cls=SettingOption,
    setting=SETTINGS["files"],
    metavar="PLACE",
    help="Where uploads go: database, or s3://bucket/prefix; without it, the database.",
)
@json_option("JSON")
def copy(source: Path, url: str | None, files: str | None, as_json: bool) -> None:
    """Copy a whole installation into an empty PostgreSQL database: ids, order, keys and secret stay the same.

    It is all there at the end, compared row by row, or nothing is. A backup can be copied while the server runs, to try it out.
    """
    with refusals(), ExitStack() as stack:
        from deskwire.config.locations import place_of
        from deskwire.storage.postgres.copying.run import Order
        from deskwire.storage.postgres.copying.run import copy as copied
        from deskwire.storage.postgres.operating.installation import Identity
        from deskwire.storage.sqlite.backup.manifest import secret_id
        from deskwire.storage.sqlite.directory import FILE_NAME

        address = given_url(url, "--to")
        place = given("files", files, "--files") or "database"
        if place == "disk":
            raise click.UsageError("Uploads can't go to disk: what is on one node's disk, others don't see.")
        environ = {name: text for name, text in os.environ.items() if name not in _OF_NODES}
        config = Config.load(environ, {"data_dir": source if source.is_dir() else None})
        folder, secrets = stack.enter_context(_opened(source, config))
        identity = Identity([secret_id(each) for each in secrets.known], place_of(place))
        order = Order(folder / FILE_NAME, folder, address, identity, _putting(place, folder), _told)
        done = copied(order)
    if as_json:
        print_json({"rows": done.rows, "files": done.files, "missingFiles": done.missing})
        return
    _tell(done, secrets, source if config.secret is None and source.is_dir() else None)


@contextmanager
def _opened(source: Path, config: Config) -> Iterator[tuple[Path, Secrets]]:
    """The directory with database and uploads, which nobody changes meanwhile, and the secrets of its installation."""
    from deskwire.storage.sqlite.database import DirectoryLock, migrate, refuse_upgrade
    from deskwire.storage.sqlite.directory import FILE_NAME, DataDirectoryError, require_whole

    if source.is_dir():
        if not (source / FILE_NAME).exists():
            raise DataDirectoryError(f"There is no Deskwire in the data directory {source}.")
        lock = DirectoryLock(source)
        try:
            require_whole(source)
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
    from deskwire.storage.sqlite.backup.archive import DATABASE
    from deskwire.storage.sqlite.backup.manifest import fitting
    from deskwire.storage.sqlite.backup.unpack import read_archive
    from deskwire.storage.sqlite.database import migrate
    from deskwire.storage.sqlite.directory import FILE_NAME

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
    """The secrets of the settings; None if they name none."""
    return (
        None if config.secret is None else present_secrets(directory, config.secret, config.secret_previous)
    )


def _wrong_secret(right: str) -> SecretError:
    return SecretError(
        f"DESKWIRE_SECRET is not {right}. With another one the webhooks' signing secrets can't be opened: set it to that one, or "
        "unset it for the copy if the secret is in there. Nothing was copied."
    )


def _require_opened(database: Path, given: Secrets | None) -> None:
    """Raise SecretError if the settings' secret does not open what the installation's has sealed."""
    from deskwire.storage.check.check import broken_seals
    from deskwire.storage.sqlite.backup.snapshot import opened

    if given is None:
        return
    with closing(opened(database, writing=False)) as connection:
        broken = list(broken_seals(connection, given))
    if broken:
        raise SecretError(
            f"DESKWIRE_SECRET does not open the signing secrets of {len(broken):,} webhooks. Set it to the installation's secret, "
            "and DESKWIRE_SECRET_PREVIOUS to the one before while a replacement is under way; remove webhooks whose secret is "
            "lost before the copy. Nothing was copied."
        )


def _known(secrets: Secrets | None, source: Path) -> Secrets:
    if secrets is None:
        raise SecretError(f"The secret of {source} is not in it: set DESKWIRE_SECRET to it.")
    return secrets


def _putting(place: str, folder: Path) -> Callable[[Content, Path], None] | None:
    """Return what puts a file of an upload where it is kept; None for the database, which the copy fills itself."""
    if place == "database":
        return None
    from deskwire.storage.open_files import open_files

    files = open_files(place, folder, None)

    def put(content: Content, path: Path) -> None:
        draft = files.draft()
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                draft.write(piece)
        if draft.finish() != content.sha256:
            draft.discard()
            raise click.ClickException(f"The upload {path} has other bytes than were uploaded.")
        draft.keep(content)

    return put


def _told(name: str) -> None:
    click.echo(f"Copying {name} …", err=True)


def _tell(done: Copied, secrets: Secrets, directory: Path | None) -> None:
    rows = sum(done.rows.values())
    click.echo(
        f"The copy is complete and compared: {rows:,} rows and {done.files:,} files ({done.file_bytes:,} bytes)."
    )
    if done.missing:
        click.echo(f"{len(done.missing):,} files were not there and are missing in the copy, too.", err=True)
    for problem in done.problems:
        click.echo(f"{problem.code}: {problem.message}", err=True)
    if done.problems:
        click.echo(
            "These problems are in the source as well; the copy has changed nothing about them.", err=True
        )
    if directory is not None:
        lines = " (its first line)" if secrets.former else ""
        click.echo(
            f"Set DESKWIRE_SECRET of all nodes to the secret in {directory / SECRET_FILE}{lines}.", err=True
        )
    if secrets.former:
        click.echo(
            "Set DESKWIRE_SECRET_PREVIOUS to the one before it as well, until its overlap is over.", err=True
        )
    click.echo("Do not start the old server again: the two would not know of each other.", err=True)
