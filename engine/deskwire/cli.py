"""The main command: `deskwire serve`, `deskwire config`, and the locations of all other commands.

A command's modules are imported when it is called. A start of the server opens its port before it imports the rest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from deskwire.commands.shell.help import HelpCommand, LazyCommand, Program
from deskwire.commands.shell.options import settings_options
from deskwire.config.config import Config

if TYPE_CHECKING:
    from deskwire.program.port import Port

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
STDERR: Final = 2
_COMMANDS: Final = "deskwire.commands"
SECTIONS: Final[Mapping[str, Mapping[str, LazyCommand]]] = {
    "Service": {
        "serve": LazyCommand("deskwire.cli:serve", "Run the server until SIGTERM or SIGINT"),
        "config": LazyCommand(
            "deskwire.cli:show_config",
            "List every setting with its variable, its value, the origin of the value, and its meaning",
        ),
        "demo": LazyCommand(
            f"{_COMMANDS}.demo.command:demo",
            "Replay support chats through the API, and check every event on webhook, stream and feed",
        ),
    },
    "Organisations and people": {
        "org": LazyCommand(f"{_COMMANDS}.admin.org:org", "Create, list, rename and delete organisations"),
        "project": LazyCommand(
            f"{_COMMANDS}.admin.project:project", "Create, list, show and change projects"
        ),
        "user": LazyCommand(
            f"{_COMMANDS}.admin.user:user",
            "Create, list and delete users, set passwords, and add, change and remove memberships",
        ),
        "key": LazyCommand(f"{_COMMANDS}.admin.key:key", "Create, list and revoke server keys"),
        "credential": LazyCommand(
            f"{_COMMANDS}.admin.credential:credential", "Create, list, rotate and revoke machine credentials"
        ),
        "token": LazyCommand(f"{_COMMANDS}.admin.key:token", "Issue, list and end access tokens"),
        "mail": LazyCommand(
            f"{_COMMANDS}.admin.mail:mail",
            "List mails that wait, were sent or have failed, and test the settings",
        ),
        "audit": LazyCommand(
            f"{_COMMANDS}.admin.audit:audit",
            "Show the audit trail: each action with its actor, time and address",
        ),
    },
    "A project through its API": {
        "webhook": LazyCommand(
            f"{_COMMANDS}.webhook.command:webhook",
            "Create, list, test, change and delete the webhook endpoints of a project",
        ),
        "deliveries": LazyCommand(
            f"{_COMMANDS}.deliveries.command:deliveries",
            "Show the log of webhook deliveries: list them with `deskwire deliveries [ENDPOINT]`, or show one with its attempts",
        ),
        "redeliver": LazyCommand(
            f"{_COMMANDS}.deliveries.command:redeliver_command",
            "Send a delivery again; with --endpoint and --since, send all that were dropped or skipped",
        ),
        "listen": LazyCommand(
            f"{_COMMANDS}.listen.command:listen",
            "Forward the project's events to a receiver on your machine, signed like webhooks, for development",
        ),
        "event": LazyCommand(f"{_COMMANDS}.event.command:event", "Follow the events of a project"),
        "contact": LazyCommand(
            f"{_COMMANDS}.contact.command:contact", "Export or erase all that is stored about a contact"
        ),
        "convert": LazyCommand(
            f"{_COMMANDS}.convert.command:convert_command",
            "Convert exports of another service to the lines that `deskwire import` takes; - reads the standard input",
        ),
        "import": LazyCommand(
            f"{_COMMANDS}.import_.command:import_command",
            "Import conversations with their messages from FILE (NDJSON); - reads the standard input",
        ),
    },
    "Operation": {
        "backup": LazyCommand(
            f"{_COMMANDS}.backup.command:backup", "Back up the database and uploads to FILE"
        ),
        "restore": LazyCommand(
            f"{_COMMANDS}.backup.command:restore",
            "Restore the backup FILE to a data directory that is empty or does not exist, completely or not at all",
        ),
        "check": LazyCommand(f"{_COMMANDS}.backup.command:check", "Check a data directory or a database"),
        "secret": LazyCommand(f"{_COMMANDS}.admin.secret:secret", "Replace the installation's secret"),
    },
    "PostgreSQL": {
        "migrate": LazyCommand(
            f"{_COMMANDS}.database.command:migrate",
            "Create or update the tables of a PostgreSQL database, so that the nodes' account needs no right to do so",
        ),
        "copy": LazyCommand(
            f"{_COMMANDS}.database.copy:copy",
            "Copy a whole installation into an empty PostgreSQL database: ids, order, keys and secret stay the same",
        ),
        "scrub": LazyCommand(
            f"{_COMMANDS}.database.command:scrub",
            "Rewrite all tables of a PostgreSQL database, so that no bytes of erased data remain in their files",
        ),
        "restored": LazyCommand(
            f"{_COMMANDS}.database.command:restored",
            "Prepare a PostgreSQL database that was restored to an earlier time, or moved to another server",
        ),
    },
    "Reference": {
        "reference": LazyCommand(
            f"{_COMMANDS}.reference.command:reference_command",
            "Print a page of the reference as Markdown: routes, commands, events, error codes, metrics, permissions, or survey rules",
        ),
        "openapi": LazyCommand(
            f"{_COMMANDS}.reference.command:openapi_command",
            "Print the OpenAPI 3.1 document of the API as JSON",
        ),
        "completion": LazyCommand(
            f"{_COMMANDS}.shell.completion:completion", "Print the script that completes commands in a shell"
        ),
    },
}
"""All commands, by heading and name, each with the first sentence of its help."""


def _answer(option: str, answer: Callable[[], str], meaning: str) -> Callable[[CommandT], CommandT]:
    """Return an option that prints an answer and ends the program."""

    def given(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
        if asked:
            click.echo(answer(), nl=False)
            ctx.exit()

    return click.option(option, is_flag=True, is_eager=True, expose_value=False, callback=given, help=meaning)


def _version() -> str:
    from deskwire.engine.core import build

    return f"deskwire, version {build.version()}, commit {build.commit()}\n"


def _notices() -> str:
    from deskwire.engine.core import build

    return build.notices()


@click.group(
    cls=Program,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog="`deskwire COMMAND --help` shows a command's options with their defaults, and examples. The exit status is 0 "
    "for success, 1 for a failure or a detected problem, and 2 for an invalid command line or invalid settings.",
)
@_answer("--version", _version, "Print the version and the commit that it was built from.")
@_answer("--notices", _notices, "Print the licences of the libraries in the executable.")
def cli() -> None:
    """Deskwire: self-hosted customer support. Every setting is also an environment variable; see `deskwire config`."""


@click.command(
    "serve",
    cls=HelpCommand,
    examples=[
        "deskwire serve",
        "deskwire serve --data /var/lib/deskwire --no-demo",
        "DESKWIRE_PORT=8443 deskwire serve --tls-cert cert.pem --tls-key key.pem",
    ],
)
@click.option(
    "--new-secret",
    is_flag=True,
    help="Start even if the data directory's secret is missing or wrong; webhooks then need new secrets.",
)
@settings_options
@click.pass_context
def serve(ctx: click.Context, /, new_secret: bool, **options: object) -> None:
    """Run the server until SIGTERM or SIGINT. The exit status is 0 after an orderly stop."""
    from deskwire.program.systemd import HandedOverError, ServiceManager

    config = Config.load(os.environ, options)
    try:
        manager = ServiceManager.of(os.environ, os.getpid())
    except HandedOverError as error:
        raise click.ClickException(f"Deskwire can't start: {error}") from error
    port = manager.port or _early(config)
    from deskwire.program.process import (
        share_one_heap,
        tune_collector_for_loading,
        without_terminal_libraries,
    )

    share_one_heap()
    tune_collector_for_loading()
    with without_terminal_libraries():
        import trio  # importing from here on takes time; clients that connect wait

        from deskwire.logs import setup as logs

    with logs.written_behind(config.log_format, config.log_level, sys.stderr, STDERR):
        with without_terminal_libraries():
            from deskwire.program.demo_password import start_hashing

            password = start_hashing(
                config
            )  # computed in parallel with the imports, because the hash takes as long
            from deskwire.program.serve import run

        status = trio.run(partial(run, config, port, manager, password, new_secret=new_secret))
    ctx.exit(status)


def _early(config: Config) -> Port | None:
    """Return the port; None if it can't be opened, which the start then reports."""
    from deskwire.program.port import take

    try:
        return take(config.host, config.port)
    except OSError:
        return None


@click.command(
    "config",
    cls=HelpCommand,
    examples=[
        "deskwire config",
        "deskwire config --json",
        "DESKWIRE_PORT=81 deskwire config | grep -A2 PORT",
    ],
)
@click.option("--json", "form", flag_value="json", show_default=False, help="Print JSON for scripts.")
@click.option(
    "--markdown",
    "form",
    flag_value="markdown",
    show_default=False,
    help="Print the reference page, with the defaults.",
)
@settings_options
def show_config(form: str | None, **options: object) -> None:
    """List every setting with its variable, its value, the origin of the value, and its meaning."""
    from deskwire.commands.reference import settings as reference
    from deskwire.commands.shell.output import print_json

    if form == "markdown":
        click.echo(reference.markdown(), nl=False)
        return
    config = Config.load(os.environ, options)
    if form == "json":
        print_json(reference.document(config))
    else:
        click.echo("\n".join(reference.lines(config)))
