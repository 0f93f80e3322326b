"""Routes, settings and other things named in the documents exist, and existing ones are documented."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import click
import pytest

from deskwire.cli import cli
from deskwire.commands.reference import api
from deskwire.config.environment import CLIENT_VARIABLES
from deskwire.config.settings import SETTINGS, VARIABLES
from deskwire.engine.agents.presence import EPHEMERAL_TYPES
from deskwire.engine.audit.actions import ACTIONS
from deskwire.engine.events.types import AGENTS, CATALOG, REGISTRY
from deskwire.http.app import ROUTES
from deskwire.http.description.error_codes import CODES
from deskwire.http.description.event_examples import example_envelopes
from tests.docs.pages import blocks, documents, guides, name, named_anchors, promises, prose
from tests.support.root import ROOT

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CALL = re.compile(r"\b(GET|POST|PUT|PATCH|DELETE) (/[\w/{}<>.-]*)")
PATH = re.compile(r"(/v3/[\w/{}$.-]*)")
EVENT = re.compile(r"`((?:conversation|message|contact|workflow|agent)\.[a-z.]+)`")
VARIABLE = re.compile(r"DESKWIRE_[A-Z0-9_]+")
NAMED_PROVIDER = re.compile(r"^(DESKWIRE_OIDC_)PARTNERS_")
"""The settings of a provider with a name, which the guides call `partners`."""
FOREIGN = re.compile(
    r"\b(?:pip install|npm install|useradd|systemctl|curl|docker|helm|kubectl|litestream|make image|podman|openapi-generator-cli)\b"
)
LINES_MAX = 190
"""A longer guide should be two guides. The output of its commands and whole files do not count."""


def shape(path: str) -> tuple[str, ...]:
    """Return a path's parts, with all parameters replaced by `*`."""
    parts = path.strip("/").split("/")
    return tuple("*" if part[:1] in ("{", "$", "<") else part for part in parts)


CALLS = {(route.method, shape(route.path)) for route in ROUTES}


def anchors(page: Path) -> set[str]:
    """Return a page's anchors: those derived from headings in the common way, and explicit ones."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return made | set(named_anchors(page))


@pytest.mark.parametrize("page", documents(), ids=name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if "://" in target:
            continue
        path, _, anchor = unquote(target).partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@pytest.mark.parametrize("page", [*guides(), *promises()], ids=name)
def test_every_call_that_is_named_is_a_route(page: Path) -> None:
    text = page.read_text()
    for method, path in CALL.findall(text):
        assert (method, shape(path.rstrip("."))) in CALLS, f"{method} {path}"
    known = {path for _, path in CALLS}
    for path in PATH.findall(text):
        wanted = shape(path.rstrip("."))
        assert any(wanted == each[: len(wanted)] for each in known), path


@pytest.mark.parametrize("page", [*guides(), *promises()], ids=name)
def test_every_event_type_that_is_named_is_one(page: Path) -> None:
    assert set(EVENT.findall(page.read_text())) <= {*REGISTRY, *EPHEMERAL_TYPES, *ACTIONS}


def test_guides_name_only_sent_events_and_those_on_request() -> None:
    for page in guides():
        unsent = (
            set(EVENT.findall(page.read_text()))
            - set(example_envelopes())
            - {*ACTIONS, *AGENTS, *EPHEMERAL_TYPES}
        )
        assert all(CATALOG[kind].opt_in for kind in unsent), name(page)


@pytest.mark.parametrize("page", documents(), ids=name)
def test_every_setting_that_is_named_is_one(page: Path) -> None:
    named = {each for each in VARIABLE.findall(page.read_text()) if not each.endswith("_")}
    assert {NAMED_PROVIDER.sub(r"\1", each) for each in named} <= VARIABLES | CLIENT_VARIABLES.keys()


def commands(group: click.Group) -> Iterator[click.Command]:
    """Yield every command of a group, including those of its subgroups."""
    context = click.Context(group)
    for known in group.list_commands(context):
        command = group.get_command(context, known)
        assert command is not None
        yield command
        if isinstance(command, click.Group):
            yield from commands(command)


def run_lines(page: Path) -> list[str]:
    """Return the commands of a page that are run, each on one line."""
    text = "".join(block.text for block in blocks(page) if block.words == ("sh", "run"))
    return re.sub(r"(\\|\|)\n\s*", r"| ", text.replace("\\\n", " ")).splitlines()


def silent_failures(line: str, captured: set[str]) -> bool:
    """True if the line hides a refused request: its output is stored or parsed, and curl reports no error."""
    helper = re.match(r"(\w+)\(\)", line)
    stored = re.search(r"\$\(curl -s |curl -s [^|]*(?:>|-o )|\| *(?:python3 -c|field|id\b|tee )", line)
    return "curl -s " in line and bool(stored or (helper and helper[1] in captured))


@pytest.mark.parametrize("page", guides(), ids=name)
def test_guides_report_a_refused_request_whose_response_is_not_shown(page: Path) -> None:
    lines = run_lines(page)
    captured = {helper for line in lines for helper in re.findall(r"\$\((\w+) ", line)}
    assert [line for line in lines if silent_failures(line, captured)] == []


@pytest.mark.parametrize(
    ("line", "silent"),
    [
        ('ID=$(curl -s $BASE/v3/x | python3 -c "")', True),
        ("curl -s $BASE/v3/x -H 'a' > made.json", True),
        ("curl -s $BASE/v3/x | field id", True),
        ('agent() { curl -s "$BASE$1"; }', True),
        ("curl -s $BASE/v3/x | python3 -m json.tool", False),
        ('ID=$(curl -fsS $BASE/v3/x | python3 -c "")', False),
    ],
)
def test_silent_failure_is_recognised(line: str, silent: bool) -> None:
    assert silent_failures(line, {"agent"}) is silent


@pytest.mark.parametrize("page", guides(), ids=name)
def test_guides_delete_each_endpoint_that_they_create(page: Path) -> None:
    """The fast form of the run of all guides on one server; a project has at most five endpoints."""
    lines = run_lines(page)
    created = [line for line in lines if re.search(r"s2s/webhooks .*\"url\"|deskwire webhook create", line)]
    deleted = [line for line in lines if re.search(r"DELETE .*s2s/webhooks/|deskwire webhook delete", line)]
    assert len(created) == len(deleted), created


def test_every_option_that_the_guides_name_exists() -> None:
    options = {each.option for each in SETTINGS.values()}
    options |= {option for command in commands(cli) for each in command.params for option in each.opts}
    options |= {"--version", "--help", "--notices"}  # of the program itself
    for page in guides():
        lines = page.read_text().replace("\\\n", " ").splitlines()
        ours = [line for line in lines if not FOREIGN.search(line)]
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", "\n".join(ours))) <= options


def test_every_command_that_the_guides_name_exists() -> None:
    for page in guides():
        for command in re.findall(r"(?:^|`)deskwire ([a-z]+)", page.read_text(), re.MULTILINE):
            assert cli.get_command(click.Context(cli), command) is not None


def test_every_make_target_that_the_guides_name_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in guides():
        assert set(re.findall(r"(?:^|`)make ([a-z]+)", page.read_text(), re.MULTILINE)) <= targets


def test_every_error_code_with_its_status_in_the_guides_is_one() -> None:
    known = {(str(each.status), each.code) for each in CODES}
    for page in [*guides(), *promises()]:
        for status, code in re.findall(r"\b([45]\d\d) `([a-z_]+)`", page.read_text()):
            assert (status, code) in known, (name(page), status, code)


def test_every_route_and_every_setting_is_in_the_reference() -> None:
    settings = (ROOT / "docs/reference/settings.md").read_text()
    assert all(f"`{variable}`" in settings for variable in VARIABLES | CLIENT_VARIABLES.keys())
    found = re.findall(r"^### `([A-Z]+) (\S+)`$", api.markdown(), re.MULTILINE)
    assert {(method, shape(path)) for method, path in found} == CALLS


def test_every_example_is_shown_from_its_file_or_linked() -> None:
    shown = set()
    for page in guides():
        links = [(page.parent / link).resolve() for link in LINK.findall(prose(page)) if "/examples/" in link]
        shown |= {path for path in links if path.parent == ROOT / "docs/examples"}
        for block in blocks(page):
            if len(block.words) > 1 and block.words[1].startswith("docs/"):
                assert block.text == (ROOT / block.words[1]).read_text(), block.words[1]
                shown.add(ROOT / block.words[1])
            if len(block.words) > 2 and block.words[1] == "from":
                assert f"\n{block.text}" in (ROOT / block.words[2]).read_text(), block.words[2]
    assert shown == {path for path in (ROOT / "docs/examples").iterdir() if path.is_file()}


@pytest.mark.parametrize("page", guides(), ids=name)
def test_a_guide_is_short_enough_to_be_read(page: Path) -> None:
    uncounted = r"^```(?:text out|\w+ docs/\S+)\n.*?^```\n\n?"
    text = re.sub(uncounted, "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert len(text.splitlines()) <= (120 if page.name == "README.md" else LINES_MAX)
