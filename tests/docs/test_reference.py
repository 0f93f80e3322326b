"""The reference that the program writes: up to date, complete, and held against the sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from http import HTTPStatus

import orjson
import pytest
from click.testing import CliRunner

from deskwire.cli import cli
from deskwire.commands.reference import api
from deskwire.commands.reference.command import PAGES
from deskwire.engine.core import errors as engine_errors
from deskwire.engine.core.errors import DomainError
from deskwire.engine.events.types import AGENTS, EXTENSIONS, REGISTRY
from deskwire.http.api.problems import STATUS
from deskwire.http.api.routing import Media
from deskwire.http.app import ROUTES
from deskwire.http.description.error_codes import CODES, INTERNAL, PROBLEMS
from deskwire.http.description.event_examples import example_envelopes
from deskwire.http.description.extension_examples import extension_envelopes
from tests.support.root import ROOT

REFERENCE = ROOT / "docs/reference"
RENDERED = ("api", "cli")
"""Pages that the site shows as the program writes them, and that the repository has a notice of."""

SOURCES = [
    path
    for layer in ("engine", "http", "storage")
    for path in sorted((ROOT / layer).rglob("*.py"))
    if "reference" not in path.parts
]
SNAKE = re.compile(r"[a-z]+(_[a-z]+)*")
ID = re.compile(r"[a-z]{3,4}_[0-7][0-9A-HJKMNP-TV-Z]{25}")


def nodes() -> Iterator[ast.AST]:
    """Every node of the syntax trees of all sources."""
    for path in SOURCES:
        yield from ast.walk(ast.parse(path.read_text()))


def text(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def name_of(call: ast.Call) -> str:
    match call.func:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def codes_in_sources() -> Iterator[tuple[str, str]]:
    """Class and code of each refusal: `SomeError(…, code="…")`, and the class's own `code = "…"`."""
    for node in nodes():
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "code" and (code := text(keyword.value)):
                    yield name_of(node), code
        if isinstance(node, ast.ClassDef):
            for line in node.body:
                match line:
                    case (
                        ast.AnnAssign(target=ast.Name("code"), value=value)
                        | ast.Assign(targets=[ast.Name("code")], value=value)
                    ) if code := text(value):
                        yield node.name, code


def problem_codes_in_sources() -> Iterator[str]:
    """Codes of single problems: `Problem(…, "…")`, `_wrong(…, "…")`, what a webhook's URL lacks."""
    for node in nodes():
        if isinstance(node, ast.Call) and name_of(node) in ("Problem", "_wrong") and len(node.args) > 1:
            yield from filter(None, [text(node.args[1])])
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple):
            yield from (code for each in node.value.elts if (code := text(each)) and code.startswith("url_"))


@pytest.mark.parametrize("page", [each for each in PAGES if each not in RENDERED])
def test_page_equals_the_programs_output(page: str) -> None:
    answer = CliRunner().invoke(cli, ["reference", page])
    assert answer.exit_code == 0, answer.output
    assert answer.stdout == (REFERENCE / f"{page}.md").read_text(), "out of date: run `make docs`"


@pytest.mark.parametrize("page", RENDERED)
def test_a_page_that_is_rendered_has_a_notice_that_names_its_command(page: str) -> None:
    answer = CliRunner().invoke(cli, ["reference", page])
    notice = (REFERENCE / f"{page}.md").read_text()
    assert answer.exit_code == 0, answer.output
    assert f"`deskwire reference {page}`" in notice
    assert notice.splitlines()[0] == answer.stdout.splitlines()[0]
    assert len(notice.split()) < 150, "the page itself is not committed"


@pytest.mark.parametrize("page", RENDERED)
def test_every_link_of_a_rendered_page_leads_somewhere(page: str) -> None:
    written = CliRunner().invoke(cli, ["reference", page]).stdout
    targets = {target for target in re.findall(r"\]\(([^)\s]+)\)", written) if "://" not in target}
    assert all((REFERENCE / target.partition("#")[0]).is_file() for target in targets), targets


def test_every_route_has_a_section_with_its_summary() -> None:
    page = api.markdown()
    for route in ROUTES:
        assert f"\n### `{route.method} {route.public_path}`\n\n{route.summary}" in page


def test_every_field_and_parameter_is_listed_by_its_name_on_the_wire() -> None:
    page = api.markdown()
    for route in ROUTES:
        section = page.partition(f"### `{route.method} {route.public_path}`\n")[2].partition("\n### ")[0]
        for model in (route.query, route.body):
            for name, field in model.model_fields.items() if model is not None else ():
                assert f"\n| `{field.alias or name}` |" in section


def test_every_event_type_that_the_sources_draft_has_an_example_and_no_other() -> None:
    drafted = {
        kind
        for node in nodes()
        if isinstance(node, ast.Call) and name_of(node) == "EventDraft" and (kind := text(node.args[0]))
    }
    assert drafted - set(AGENTS) - set(EXTENSIONS) == set(example_envelopes())
    assert set(extension_envelopes()) == set(EXTENSIONS)
    assert drafted <= set(REGISTRY)


def test_every_type_of_the_registry_is_on_the_page() -> None:
    page = (REFERENCE / "events.md").read_text()
    assert all(f"\n| `{kind}` | " in page for kind in REGISTRY)


def test_the_examples_are_envelopes_with_well_formed_ids() -> None:
    for kind, envelope in {**example_envelopes(), **extension_envelopes()}.items():
        document = orjson.loads(envelope)
        assert document["type"] == kind
        assert (document["sequence"] is not None) == REGISTRY[kind].numbered
        ids = re.findall(r'"((?:cnv|con|evt|msg|prj|usr)_[^"]*)"', envelope.decode())
        assert all(ID.fullmatch(each) for each in ids)


def test_every_code_in_the_sources_is_documented_with_its_status() -> None:
    found = set(codes_in_sources())
    assert len(found) > 30
    documented = {(each.status, each.code) for each in CODES}
    for owner, code in found:
        kind = getattr(engine_errors, owner, None)
        if code in INTERNAL:
            continue
        if isinstance(kind, type) and issubclass(kind, DomainError):
            assert (STATUS[kind], code) in documented, (
                f"{owner} {code} is not in deskwire.http.description.error_codes"
            )
        else:
            assert code in {each.code for each in CODES}, (
                f"{owner} {code} is not in deskwire.http.description.error_codes"
            )


def test_no_code_is_documented_that_the_sources_do_not_have() -> None:
    everywhere = "\n".join(path.read_text() for path in SOURCES)
    for code in {each.code for each in CODES} | INTERNAL.keys() | PROBLEMS.keys():
        assert f'"{code}"' in everywhere, code


def test_every_code_of_a_single_problem_is_documented() -> None:
    from deskwire.http.api.input import validation_messages

    found = {*problem_codes_in_sources(), *validation_messages._CODES.values()}
    assert len(found) > 20
    assert found <= PROBLEMS.keys()


def test_codes_are_snake_case_listed_once_and_statuses_real() -> None:
    assert all(SNAKE.fullmatch(each.code) and HTTPStatus(each.status) for each in CODES)
    assert len({(each.status, each.code) for each in CODES}) == len(CODES)
    assert not INTERNAL.keys() & {each.code for each in CODES}


def test_every_call_that_is_answered_in_json_has_its_response_beside_it() -> None:
    sections = api.markdown().split("\n### `")[1:]
    for route, section in zip(ROUTES, sections, strict=True):
        assert section.startswith(f"{route.method} {route.public_path}`")
        shown = re.findall(r"\n```json\n(.*?)\n```\n", section, re.DOTALL)
        assert len(shown) == (not isinstance(route.answer, Media)), route.operation_id
        for example in shown:
            assert isinstance(orjson.loads(example), dict)
