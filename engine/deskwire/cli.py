"""The command line: `deskwire serve`, `deskwire config`, and what other modules register."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click
import rich.console
import trio

from deskwire import logs, reference
from deskwire.admin.key import key, token
from deskwire.admin.org import org
from deskwire.admin.project import project
from deskwire.admin.user import user
from deskwire.backup.command import backup, check, restore
from deskwire.config import SETTINGS, Config
from deskwire.demo.command import demo
from deskwire.importing.command import import_command
from deskwire.listen.command import listen
from deskwire.operate.command import deliveries, redeliver_command
from deskwire.reference.command import openapi_command, reference_command
from deskwire.setting import Setting

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
WIDTH_IN_A_PIPE: Final = 240  # characters; without a terminal there is no width to fit into


def settings_options(command: CommandT) -> CommandT:
    """Give a command the option of every setting that has one; it receives them as keywords by field name.

    The values stay text, so that `Config.load` reports what is wrong with them together with everything else.
    """
    for each in reversed(tuple(SETTINGS.values())):
        if each.option is not None:
            command = _option(each, each.option)(command)
    return command


def _option(each: Setting, option: str) -> Callable[[CommandT], CommandT]:
    if isinstance(each.default, bool):
        opposite = "false" if each.default else "true"
        return click.option(option, each.name, flag_value=opposite, type=str, default=None, help=each.meaning)
    return click.option(option, each.name, type=str, metavar="TEXT", help=each.meaning)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="deskwire", prog_name="deskwire")
def cli() -> None:
    """Deskwire: self-hosted customer support. Every setting is also a variable; see `deskwire config`."""


@cli.command()
@settings_options
@click.pass_context
def serve(ctx: click.Context, /, **options: object) -> None:
    """Run the server until SIGTERM or SIGINT; the exit status is 0 after an orderly stop."""
    config = Config.load(os.environ, options)
    logs.configure(config.log_format, config.log_level, sys.stderr)
    from deskwire.program import run  # here, so that the other commands do without the server's libraries

    ctx.exit(trio.run(run, config))


@cli.command("config")
@click.option("--json", "form", flag_value="json", help="Print JSON, for scripts.")
@click.option("--markdown", "form", flag_value="markdown", help="Print the reference page with the defaults.")
@settings_options
def show_config(form: str | None, **options: object) -> None:
    """List every setting: its name, variable, value, where that comes from, and what it means."""
    if form == "markdown":
        click.echo(reference.markdown(), nl=False)
        return
    config = Config.load(os.environ, options)
    if form == "json":
        click.echo(json.dumps(reference.document(config), indent=2))
    else:
        _print_table(config)


def _print_table(config: Config) -> None:
    console = rich.console.Console(width=None if sys.stdout.isatty() else WIDTH_IN_A_PIPE)
    console.print(reference.table(config))
    console.print(reference.client_table())


# Commands from other modules are registered here, one line each: cli.add_command(...)
cli.add_command(backup)
cli.add_command(check)
cli.add_command(demo)
cli.add_command(import_command)
cli.add_command(listen)
cli.add_command(deliveries)
cli.add_command(redeliver_command)
cli.add_command(key)
cli.add_command(org)
cli.add_command(openapi_command)
cli.add_command(project)
cli.add_command(reference_command)
cli.add_command(restore)
cli.add_command(token)
cli.add_command(user)
