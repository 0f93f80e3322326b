"""The commands `deskwire reference` and `deskwire openapi`, which print the reference of the program."""

from __future__ import annotations

import json
from importlib import import_module

import click

PAGES = ("api", "events", "errors", "metrics", "surveys")


@click.command("reference")
@click.argument("page", type=click.Choice(PAGES))
def reference_command(page: str) -> None:
    """Print a page of the reference as Markdown: routes, events, error codes, metrics, or survey rules."""
    # Imported here, so that the other commands do without the server's libraries.
    click.echo(import_module(f"deskwire.commands.reference.{page}").markdown(), nl=False)


@click.command("openapi")
def openapi_command() -> None:
    """Print the description of the API, an OpenAPI 3.1 document, as JSON."""
    document = import_module("deskwire.commands.reference.openapi.document").document()
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
