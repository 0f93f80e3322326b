"""`deskwire backup`, `deskwire restore` and `deskwire check`. Their modules are imported when they run."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import to_builtins

from deskwire.commands.database.access import refusals
from deskwire.commands.shell.help import HelpCommand
from deskwire.commands.shell.options import common_options, installation_config
from deskwire.commands.shell.output import print_json, shown_progress
from deskwire.config.config import Config

if TYPE_CHECKING:
    from deskwire.engine.core.secret import Secrets
    from deskwire.engine.core.values import ProgressReporter
    from deskwire.storage.check.rules import CheckProblem, CheckReport
    from deskwire.storage.sqlite.backup.make import Backup
    from deskwire.storage.sqlite.backup.restore import Restored

_FILE: Final = click.Path(dir_okay=False, path_type=Path)
_SHOWN_MAX: Final = 10  # problems shown by a backup or restore; `deskwire check` shows all


@click.command(
    "backup",
    cls=HelpCommand,
    examples=[
        "deskwire backup /backups/deskwire-2026-11-21.tar",
        "deskwire backup /backups/latest.tar --force --json",
    ],
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--with-secret", is_flag=True, help="Include the installation's secret.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@common_options
def backup(file: Path, with_secret: bool, force: bool, data: Path | None, as_json: bool) -> None:
    """Back up the database and uploads to FILE. The server may be running; FILE appears once it is complete and verified.

    Without --with-secret, FILE lacks the installation's secret. Keep a copy of the secret elsewhere: without it, webhooks
    can't be signed and every token becomes invalid.
    """
    from deskwire.engine.core.build import version
    from deskwire.engine.core.clock import iso, wall_clock
    from deskwire.program.secret_file import present_secrets
    from deskwire.storage.sqlite.backup.make import BackupRequest, back_up

    config = installation_config(data)
    _require_directory(
        config, "Back it up with PostgreSQL's or the provider's own tools, such as pg_dump or snapshots"
    )
    with refusals(), shown_progress() as tell:
        secrets = present_secrets(config.data_dir, config.secret, config.secret_previous)
        now = iso(wall_clock())
        finished = back_up(
            BackupRequest(config.data_dir, file, secrets, with_secret, force, version(), now, tell)
        )
    _warn(finished.problems, "The data has problems, which are also in the backup")
    if missing := finished.manifest.missing_files:
        click.echo(
            f"{missing:,} files of uploads were erased during the backup or are damaged: they are omitted.",
            err=True,
        )
    if as_json:
        print_json(_backup_document(finished))
        return
    click.echo(f"The backup {finished.path} is complete and verified: {_size(finished)}.")
    if not with_secret:
        click.echo(
            "The backup does not contain the installation's secret: keep a separate copy of it.", err=True
        )


@click.command(
    "restore",
    cls=HelpCommand,
    examples=[
        "deskwire restore backup.tar --data ./restored --secret-file secret.txt",
        "deskwire restore backup.tar --skip-pending",
    ],
)
@click.argument("file", type=_FILE)
@click.option(
    "--secret-file", type=_FILE, help="File with the installation's secret, if the backup lacks it."
)
@click.option(
    "--new-secret",
    is_flag=True,
    help="Continue without the old secret; all webhooks must be registered again.",
)
@click.option(
    "--skip-pending", is_flag=True, help="Do not send the deliveries that were pending in the backup."
)
@common_options
def restore(
    file: Path,
    secret_file: Path | None,
    new_secret: bool,
    skip_pending: bool,
    data: Path | None,
    as_json: bool,
) -> None:
    """Restore the backup FILE to a data directory that is empty or does not exist, completely or not at all.

    Deliveries that were pending when the backup was made are sent when the server starts, unless they are too old; some of
    them may be sent twice.
    """
    from deskwire.engine.core.clock import wall_clock
    from deskwire.storage.sqlite.backup.restore import RestoreRequest
    from deskwire.storage.sqlite.backup.restore import restore as put_in_place

    config = installation_config(data)
    _require_directory(
        config,
        "Restore it with PostgreSQL's or the provider's own tools, and run `deskwire restored`; a backup of a data directory "
        "goes into an empty database with `deskwire copy --from FILE`",
    )
    with refusals(), shown_progress() as tell:
        secrets = _given(secret_file, config)
        keep, now = secret_file is not None, wall_clock()
        done = put_in_place(
            RestoreRequest(file, config.data_dir, secrets, keep, new_secret, skip_pending, now, tell)
        )
    _warn(done.problems, "The data in the backup already had problems")
    if as_json:
        print_json(_restored_document(done))
        return
    head = done.contents.head
    click.echo(f"{config.data_dir} is restored to its state at {head.created_at} (Deskwire {head.version}).")
    if skip_pending:
        click.echo(
            f"{done.skipped:,} pending deliveries are skipped; `deskwire redeliver` sends them after all."
        )
    if not done.contents.sealed:
        click.echo("Without the installation's secret, changes to the backup can't be detected.", err=True)


@click.command("check", cls=HelpCommand, examples=["deskwire check", "deskwire check --files --json"])
@click.option("--files", "contents", is_flag=True, help="Also read all uploads and compare their checksums.")
@common_options
@click.pass_context
def check(ctx: click.Context, contents: bool, data: Path | None, as_json: bool) -> None:
    """Check a data directory or a database. The server may be running; the exit status is 1 if there are problems.

    Checks the database file, the numbering of events, the deliveries, the uploads and their files, and the secret.
    """
    from deskwire.program.secret_file import present_secrets
    from deskwire.storage.sqlite.check import check as checked

    config = installation_config(data)
    with refusals(), shown_progress() as tell:
        secrets = present_secrets(config.data_dir, config.secret, config.secret_previous)
        if config.database_url is None:
            report, what = (
                checked(config.data_dir, secrets, contents=contents, tell=tell),
                str(config.data_dir),
            )
        else:
            report, what = _database_report(config, config.database_url, secrets, tell, contents=contents)
    if as_json:
        print_json({"ok": not report.problems, **to_builtins(report)})
    else:
        _print_report(what, report)
    ctx.exit(1 if report.problems else 0)


def _require_directory(config: Config, advice: str) -> None:
    """Raise ClickException if the settings name a database, for a command about a data directory."""
    if config.database_url is not None:
        raise click.ClickException(
            f"DESKWIRE_DATABASE_URL is set, so the data is in PostgreSQL. {advice}. Unset it to use a data directory."
        )


def _database_report(
    config: Config, url: str, secrets: Secrets | None, tell: ProgressReporter, *, contents: bool
) -> tuple[CheckReport, str]:
    """Return the report on a database, and the name to show for the database."""
    from deskwire.config.locations import shown_database
    from deskwire.storage.file_stores import open_files
    from deskwire.storage.postgres.admin.check import check as checked

    with closing(open_files(config.uploads_at, config.data_dir, url)) as files:
        return checked(url, secrets, files, contents=contents, tell=tell), shown_database(url)


def _given(file: Path | None, config: Config) -> Secrets | None:
    """Return the secrets in the file, else those of the settings; None without either."""
    from deskwire.program.secret_file import SecretError, installation_secrets, secrets_in

    if file is None:
        if config.secret is None:
            return None
        return installation_secrets(config.data_dir, config.secret, config.secret_previous)
    try:
        return secrets_in(file)
    except OSError as error:
        raise SecretError(f"The secret in {file} can't be read: {error}") from error


def _print_report(directory: str, report: CheckReport) -> None:
    for problem in report.problems:
        click.echo(f"{problem.code}: {problem.message}")
    for note in report.notes:
        click.echo(note, err=True)
    if report.problems:
        click.echo(f"{len(report.problems)} problems in {directory}.", err=True)
    else:
        from deskwire.storage.check.counts import counted

        rows = counted(report.rows)
        click.echo(f"{directory} has no problems: {rows:,} rows and {report.files:,} files.")


def _warn(problems: list[CheckProblem], words: str) -> None:
    if problems:
        click.echo(f"{words}; `deskwire check` lists them all:", err=True)
    for problem in problems[:_SHOWN_MAX]:
        click.echo(f"  {problem.message}", err=True)


def _size(finished: Backup) -> str:
    from deskwire.storage.check.counts import counted

    manifest = finished.manifest
    return f"{counted(manifest.rows):,} rows, {manifest.files:,} files, {finished.size:,} bytes"


def _backup_document(finished: Backup) -> dict[str, Any]:
    head, manifest = finished.head, finished.manifest
    return {
        "file": str(finished.path),
        "bytes": finished.size,
        "problems": len(finished.problems),
        **head.model_dump(by_alias=True),
        **manifest.model_dump(by_alias=True),
    }


def _restored_document(done: Restored) -> dict[str, Any]:
    contents = done.contents
    return {
        "createdAt": contents.head.created_at,
        "version": contents.head.version,
        "sealed": contents.sealed,
        "lastEvent": contents.manifest.last_event,
        "skippedDeliveries": done.skipped,
        "problems": len(done.problems),
    }
