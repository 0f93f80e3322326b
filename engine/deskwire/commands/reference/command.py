"""`deskwire reference` and `deskwire openapi`, which print reference documents."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import click

from deskwire.commands.shell.help import HelpCommand

PAGES = ("api", "cli", "events", "errors", "metrics", "permissions", "surveys")
# Modules of pages with another name: `errors` is the registry of error codes.
_MODULES = {
    "errors": "deskwire.http.description.errors_page",
    "events": "deskwire.http.description.event_examples",
    "permissions": "deskwire.http.description.permissions",
}


@click.command(
    "reference",
    cls=HelpCommand,
    examples=["deskwire reference events", "deskwire reference asyncapi > asyncapi.json"],
)
@click.argument("page", type=click.Choice((*PAGES, "asyncapi")))
def reference_command(page: str) -> None:
    """Print a page of the reference as Markdown: routes, commands, events, error codes, metrics, permissions, or survey rules.

    The page `asyncapi` describes the events as JSON, an AsyncAPI 3.0 document.
    """
    # Imported here, so that other commands don't load the server's libraries.
    if page == "asyncapi":
        _print(import_module("deskwire.http.description.asyncapi.document").document())
        return
    click.echo(import_module(_MODULES.get(page, f"deskwire.commands.reference.{page}")).markdown(), nl=False)


@click.command("openapi", cls=HelpCommand, examples=["deskwire openapi > openapi.json"])
def openapi_command() -> None:
    """Print the OpenAPI 3.1 document of the API as JSON."""
    _print(import_module("deskwire.http.description.openapi.document").document())


def _print(document: Any) -> None:
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
