"""The command line: `deskwire serve`, `deskwire config`, and the commands of other modules.

What a command needs is loaded when it is called. A start of the server takes its port before it loads the rest.
"""

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, TypeVar

import click

from deskwire.config.parsers import Setting
from deskwire.config.settings import SETTINGS, Config
from deskwire.program.port import Port, take
from deskwire.program.systemd import HandedOverError, ServiceManager

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
WIDTH_IN_A_PIPE: Final = 240  # characters; without a terminal there is no width to fit into
STDERR: Final = 2
ELSEWHERE: Final = {
    "audit": "deskwire.commands.admin.audit:audit",
    "backup": "deskwire.commands.backup.command:backup",
    "check": "deskwire.commands.backup.command:check",
    "copy": "deskwire.commands.database.copy:copy",
    "deliveries": "deskwire.commands.deliveries.command:deliveries",
    "demo": "deskwire.commands.demo.command:demo",
    "import": "deskwire.commands.import_.command:import_command",
    "credential": "deskwire.commands.admin.credential:credential",
    "key": "deskwire.commands.admin.key:key",
    "listen": "deskwire.commands.listen.command:listen",
    "migrate": "deskwire.commands.database.command:migrate",
    "openapi": "deskwire.commands.reference.command:openapi_command",
    "org": "deskwire.commands.admin.org:org",
    "project": "deskwire.commands.admin.project:project",
    "redeliver": "deskwire.commands.deliveries.command:redeliver_command",
    "reference": "deskwire.commands.reference.command:reference_command",
    "restore": "deskwire.commands.backup.command:restore",
    "restored": "deskwire.commands.database.command:restored",
    "scrub": "deskwire.commands.database.command:scrub",
    "secret": "deskwire.commands.admin.secret:secret",
    "token": "deskwire.commands.admin.key:token",
    "user": "deskwire.commands.admin.user:user",
}
"""Commands of other modules, by name; each is loaded when it is asked for."""


class Commands(click.Group):
    """The commands of this module, and those from elsewhere."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted({*super().list_commands(ctx), *ELSEWHERE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name."""
        if cmd_name not in ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        module, _, name = ELSEWHERE[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command


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


def _answer(option: str, answer: Callable[[], str], meaning: str) -> Callable[[CommandT], CommandT]:
    """Return an option that prints an answer, and nothing else is done."""

    def given(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
        if asked:
            click.echo(answer(), nl=False)
            ctx.exit()

    return click.option(option, is_flag=True, is_eager=True, expose_value=False, callback=given, help=meaning)


def _version() -> str:
    from deskwire.program import build

    return f"deskwire, version {build.version()}, commit {build.commit()}\n"


def _notices() -> str:
    from deskwire.program import build

    return build.notices()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@_answer("--version", _version, "Print the version and the commit that it was built from.")
@_answer("--notices", _notices, "Print the licences of the libraries in the executable.")
def cli() -> None:
    """Deskwire: self-hosted customer support. Every setting is also an environment variable; see `deskwire config`."""


@cli.command()
@settings_options
@click.pass_context
def serve(ctx: click.Context, /, **options: object) -> None:
    """Run the server until SIGTERM or SIGINT. The exit status is 0 after an orderly stop."""
    config = Config.load(os.environ, options)
    try:
        manager = ServiceManager.of(os.environ, os.getpid())
    except HandedOverError as error:
        raise click.ClickException(f"Deskwire can't start: {error}") from error
    port = manager.port or _early(config)
    import trio  # from here on what takes time to load; whoever connects meanwhile waits

    from deskwire.logs import setup as logs
    from deskwire.program.memory import share_one_heap

    share_one_heap()
    with logs.written_behind(config.log_format, config.log_level, sys.stderr, STDERR):
        from deskwire.program.serve import run

        status = trio.run(run, config, port, manager)
    ctx.exit(status)


def _early(config: Config) -> Port | None:
    """Return the port, if it can be had; if not, the program says why later, or what else is wrong."""
    try:
        return take(config.host, config.port)
    except OSError:
        return None


@cli.command("config")
@click.option("--json", "form", flag_value="json", help="Print JSON for scripts.")
@click.option(
    "--markdown", "form", flag_value="markdown", help="Print the reference page, with the defaults."
)
@settings_options
def show_config(form: str | None, **options: object) -> None:
    """List every setting with its variable, its value, the origin of the value, and its meaning."""
    from deskwire.commands import reference

    if form == "markdown":
        click.echo(reference.markdown(), nl=False)
        return
    config = Config.load(os.environ, options)
    if form == "json":
        click.echo(json.dumps(reference.document(config), indent=2))
    else:
        _print_table(config)


def _print_table(config: Config) -> None:
    import rich.console

    from deskwire.commands import reference

    console = rich.console.Console(width=None if sys.stdout.isatty() else WIDTH_IN_A_PIPE)
    console.print(reference.table(config))
    console.print(reference.client_table())
