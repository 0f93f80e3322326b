"""The help of every command: whole, under headings, with examples that can be typed, defaults and variables."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from deskwire.cli import SECTIONS, cli
from deskwire.commands.shell.help import HelpCommand, all_commands, summary

CONTEXT = click.Context(cli, info_name="deskwire")
ALL = {" ".join(words): command for words, command in all_commands(cli, CONTEXT)}
LEAVES = {name: command for name, command in ALL.items() if not isinstance(command, click.Group)}


def help_of(name: str = "") -> str:
    """Return what `--help` prints in a terminal of 80 columns."""
    answer = CliRunner().invoke(cli, [*name.split(), "--help"], terminal_width=80)
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def test_programs_help_shows_every_command_under_its_heading_with_the_whole_summary() -> None:
    shown = " ".join(help_of().split())
    assert "..." not in shown.replace("COMMAND [ARGS]...", "")
    for heading, section in SECTIONS.items():
        below = shown.partition(f"{heading}: ")[2]
        for name, each in section.items():
            assert f"{name} {each.summary}" in below


def test_help_has_the_names_and_summaries_of_all_commands() -> None:
    listed = {name: each for section in SECTIONS.values() for name, each in section.items()}
    for name, each in listed.items():
        command = each.load()
        assert (command.name, summary(command)) == (name, each.summary)


@pytest.mark.parametrize("name", [name for name, each in ALL.items() if isinstance(each, click.Group)])
def test_a_groups_help_shows_the_whole_summary_of_each_of_its_commands(name: str) -> None:
    group = ALL[name]
    assert isinstance(group, click.Group)
    shown = " ".join(help_of(name).split())
    for each, command in group.commands.items():
        assert f"{each} {summary(command)}" in shown


def test_every_commands_help_fits_a_terminal_and_ends_with_examples() -> None:
    for name, command in LEAVES.items():
        assert isinstance(command, HelpCommand), name
        assert command.examples, name
        text = help_of(name)
        assert all(len(line) <= 80 for line in text.splitlines() if line.strip() not in command.examples), (
            name
        )
        assert text.partition("\nExamples:\n")[2].split("\n") == [
            *(f"  {each}" for each in command.examples),
            "",
        ]


@pytest.mark.parametrize("name", LEAVES)
def test_examples_of_a_command_are_valid_command_lines(name: str) -> None:
    command = LEAVES[name]
    assert isinstance(command, HelpCommand)
    for example in command.examples:
        typed, parts = words_of(example), name.split()
        assert typed[: len(parts)] == parts or typed[: len(parts) - 1] == parts[:-1], (
            example
        )  # `list` may be left out
        given = typed[len(parts) :] if typed[: len(parts)] == parts else typed[len(parts) - 1 :]
        try:
            command.make_context(name, given)
        except click.BadParameter as error:
            if "does not exist" not in str(error):  # a file of the page's reader
                raise


def words_of(example: str) -> list[str]:
    """Return the words after `deskwire` in a line for a shell, up to a pipe or a redirection."""
    inner = re.search(r"\$\((.*)\)", example)
    words = shlex.split(inner[1] if inner else example)
    begin = words.index("deskwire") + 1
    ends = [at for at, word in enumerate(words) if word in {"|", ">"} and at > begin]
    return words[begin : min(ends, default=len(words))]


def test_options_of_settings_name_their_variable_and_default() -> None:
    serve = " ".join(help_of("serve").split())
    assert "[env var: DESKWIRE_PORT; default: 8080]" in serve
    assert "--no-demo Leave an empty data directory empty: create no demo organisation" in serve
    assert (
        "--data DIRECTORY Data directory of the server. [env var: DESKWIRE_DATA; default: data]"
        in " ".join(help_of("org list").split())
    )


def test_options_of_clients_name_their_variable() -> None:
    shown = " ".join(help_of("webhook list").split())
    for variable in ("DESKWIRE_URL", "DESKWIRE_KEY", "DESKWIRE_CACERT", "DESKWIRE_DATA"):
        assert f"env var: {variable}" in shown


def test_a_command_that_does_not_exist_is_a_wrong_command_line() -> None:
    answer = CliRunner().invoke(cli, ["orgs"])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "No such command 'orgs'" in answer.stderr


@pytest.mark.parametrize(("words", "meant"), [("sevre", "serve"), ("orgs", "org"), ("org lst", "list")])
def test_misspelt_command_gets_the_similar_ones(words: str, meant: str) -> None:
    answer = CliRunner().invoke(cli, words.split())
    assert answer.exit_code == 2
    assert "Did you mean" in answer.stderr
    assert f"'{meant}'" in answer.stderr


def test_every_command_that_lists_something_has_json() -> None:
    for name, command in LEAVES.items():
        if name.split()[-1] in ("list", "show", "deliveries"):
            assert any("--json" in each.opts for each in command.params), name


def test_every_command_that_deletes_for_good_has_a_confirming_option() -> None:
    for name, command in LEAVES.items():
        if name.split()[-1] in ("delete", "erase"):
            assert any("--yes" in each.opts for each in command.params), name
