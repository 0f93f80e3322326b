"""`deskwire reference`: prints a page of the reference."""

from __future__ import annotations

from importlib import import_module

import click

PAGES = ("api", "events", "errors", "metrics", "surveys")


@click.command("reference")
@click.argument("page", type=click.Choice(PAGES))
def reference_command(page: str) -> None:
    """Print a page of the reference as Markdown: routes, events, error codes, metrics, or survey rules."""
    # Imported here, so that the other commands do without the server's libraries.
    click.echo(import_module(f"deskwire.reference.{page}").markdown(), nl=False)
