"""`deskwire demo` and its options. Its modules are imported when it runs, so that other commands start fast."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

import click

from deskwire.commands.api_client.access import base_url, cacert_option, trust
from deskwire.commands.shell.help import HelpCommand


@click.command(
    "demo",
    cls=HelpCommand,
    examples=[
        "deskwire demo",
        "deskwire demo --desk",
        "deskwire demo --desk --data ./data",
    ],
)
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--url", metavar="URL", help="Base URL of a running service; without it, the demo starts its own."
)
@click.option("--key", metavar="sk_...", help="Server key for --url, of a project that no one else is using.")
@cacert_option
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1_000),
    default=16,
    show_default=True,
    help="Chats to replay at the same time.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Replay at most this many chats.")
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of times to replay them.",
)
@click.option("--no-webhook", is_flag=True, help="Do not use webhooks.")
@click.option(
    "--patience",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for missing events while none arrive.",
)
@click.option("--keep", is_flag=True, help="Keep the data directory of the demo's own service.")
@click.option(
    "--desk", is_flag=True, help="Fill an inbox to look at in a browser, and leave it there until Ctrl-C."
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="With --desk: fill the demo project of the running service that has this data directory.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON for scripts.")
@click.pass_context
def demo(
    ctx: click.Context,
    file: Path | None,
    url: str | None,
    key: str | None,
    cacert: Path | None,
    concurrency: int,
    limit: int | None,
    repeat: int,
    no_webhook: bool,
    patience: float,
    keep: bool,
    desk: bool,
    data: Path | None,
    as_json: bool,
) -> None:
    """Replay support chats through the API, and check every event on webhook, stream and feed.

    FILE has one chat per line, as JSON: {id, topic[], customer?, turns: [{speaker: customer|agent|system,
    text}]}. Without it the bundled chats are replayed. The exit status is 0 if nothing is missing or wrong.
    """
    import trio

    from deskwire.commands.demo.chats import BadChats, load_chats
    from deskwire.commands.demo.output import show_demo, show_inbox
    from deskwire.commands.demo.replay import ReplayOptions

    if (url is None) != (key is None):
        raise click.UsageError("--url and --key belong together: give both or neither.")
    if data is not None and not desk:
        raise click.UsageError("--data is for --desk.")
    if desk and (as_json or url is not None):
        raise click.UsageError("--desk is for the demo's own service, or one that --data names.")
    if data is not None:
        ctx.exit(trio.run(show_inbox, data))
    try:
        chats = load_chats(file)[:limit]
    except BadChats as error:
        raise click.ClickException(str(error)) from error
    options = ReplayOptions(
        chats=tuple(itertools.chain.from_iterable(itertools.repeat(chats, repeat))),
        concurrency=concurrency,
        url=None if url is None else base_url(url),
        key=key,
        trust=trust(cacert),
        webhook=not no_webhook,
        patience_s=patience,
        keep=keep,
    )
    ctx.exit(trio.run(partial(show_demo, options, as_json, desk=desk)))
