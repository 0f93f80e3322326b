"""`deskwire copy`: copies a data directory, or a backup of one, into an empty PostgreSQL database."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deskwire.commands.database.access import given, given_url, refusals
from deskwire.commands.shell.help import HelpCommand
from deskwire.commands.shell.options import SettingOption, json_option
from deskwire.commands.shell.output import print_json
from deskwire.config.config import Config
from deskwire.config.settings import SETTINGS

if TYPE_CHECKING:
    from deskwire.engine.core.secret import Secrets
    from deskwire.storage.copying.run import Copied

_OF_NODES = {SETTINGS[name].variable for name in ("database_url", "files", "node", "require_sync_standby")}
"""Variables that are about the target; the source is not a database."""


@click.command(
    "copy",
    cls=HelpCommand,
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
    help="Data directory of a stopped server, or a backup of one.",
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
    help="Storage of uploads: database, or s3://bucket/prefix; default: the database.",
)
@json_option("JSON")
def copy(source: Path, url: str | None, files: str | None, as_json: bool) -> None:
    """Copy a whole installation into an empty PostgreSQL database: ids, order, keys and secret stay the same.

    The copy is compared row by row, and is complete or not made at all. A backup can be copied while the server runs, for a trial.
    """
    with refusals(), ExitStack() as stack:
        from deskwire.commands.database.source import opened_source, putting
        from deskwire.config.locations import place_of
        from deskwire.storage.copying.run import CopyRequest
        from deskwire.storage.copying.run import copy as copied
        from deskwire.storage.postgres.admin.installation import InstallationIdentity
        from deskwire.storage.sqlite.backup.manifest import secret_id
        from deskwire.storage.sqlite.directory import FILE_NAME

        address = given_url(url, "--to")
        place = given("files", files, "--files") or "database"
        if place == "disk":
            raise click.UsageError("Uploads can't be stored on disk: other nodes can't read one node's disk.")
        environ = {name: text for name, text in os.environ.items() if name not in _OF_NODES}
        config = Config.load(environ, {"data_dir": source if source.is_dir() else None})
        folder, secrets = stack.enter_context(opened_source(source, config))
        identity = InstallationIdentity([secret_id(each) for each in secrets.known], place_of(place))
        request = CopyRequest(
            folder / FILE_NAME, folder, address, identity, putting(place, folder), _report_file
        )
        done = copied(request)
    if as_json:
        print_json({"rows": done.rows, "files": done.files, "missingFiles": done.missing})
        return
    _print_result(done, secrets, source if config.secret is None and source.is_dir() else None)


def _report_file(name: str) -> None:
    click.echo(f"Copying {name} …", err=True)


def _print_result(done: Copied, secrets: Secrets, directory: Path | None) -> None:
    from deskwire.storage.check.counts import counted
    from deskwire.storage.sqlite.directory import SECRET_FILE

    rows = counted(done.rows)
    click.echo(
        f"The copy is complete and compared: {rows:,} rows and {done.files:,} files ({done.file_bytes:,} bytes)."
    )
    if done.missing:
        click.echo(
            f"{len(done.missing):,} files were missing in the source and are missing in the copy, too.",
            err=True,
        )
    for problem in done.problems:
        click.echo(f"{problem.code}: {problem.message}", err=True)
    if done.problems:
        click.echo("These problems are in the source, too; the copy has not changed them.", err=True)
    if directory is not None:
        lines = " (its first line)" if secrets.previous else ""
        click.echo(
            f"Set DESKWIRE_SECRET of all nodes to the secret in {directory / SECRET_FILE}{lines}.", err=True
        )
    if secrets.previous:
        click.echo(
            "Also set DESKWIRE_SECRET_PREVIOUS to the previous secret until its overlap ends.", err=True
        )
    click.echo("Do not start the old server again: its data and the copy would diverge.", err=True)
