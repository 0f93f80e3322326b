"""Refusals in terms of the typed command."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from deskwire.commands.shell.refusals import as_options


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        ("/ttlS: This must be at least 60.", "--ttl: This must be at least 60."),
        ("/change/settings/uploadQuota: Too much.", "--upload-quota: Too much."),
        ("/events/1: There is no such type.", "--event (number 2): There is no such type."),
        ("/name: Too long.", "NAME: Too long."),
        ("/settings/other: Not allowed.", "settings.other: Not allowed."),
        ("There is no user.", "There is no user."),
        ("?limit: Too many.", "?limit: Too many."),
    ],
)
def test_refusal_names_a_field_by_its_option(problem: str, told: str) -> None:
    @click.command()
    @click.argument("name")
    @click.option("-t", "--ttl")
    @click.option("--upload-quota")
    @click.option("--event", "events", multiple=True)
    def command(**_: object) -> None:
        click.echo("\n".join(as_options([problem], {"ttlS": "ttl"})))

    assert CliRunner().invoke(command, ["x"]).stdout == f"{told}\n"
