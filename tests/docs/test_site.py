"""The site made from `docs/`: every page is in its navigation, and nothing is loaded from other hosts (ADR 23)."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

from deskwire.http.description.openapi.document import document
from tests.docs.test_pages import anchors
from tests.support.root import ROOT

pytestmark = pytest.mark.long

DOCS: Final = ROOT / "docs"
METHODS: Final = ("get", "post", "put", "patch", "delete")
LOADS: Final = {
    "link": "href",
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "use": "href",
}
"""Elements whose resources a browser fetches automatically, with the attribute of the address."""

CSS_ADDRESS: Final = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
COMMENT: Final = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
NAMESPACE: Final = "http://www.w3.org/2000/svg"  # only a name; browsers do not fetch it
FURO: Final = find_spec("furo")
needs_sphinx: Final = pytest.mark.skipif(FURO is None, reason="`make site` installs what it needs")


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "site/conf.py"))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prepared sources of the site."""
    folder = tmp_path_factory.mktemp("site") / "source"
    runpy.run_path(str(DOCS / "site/sources.py"))["prepare"](folder)
    return folder


def test_every_page_has_its_place_in_the_navigation_once(configuration: dict[str, Any]) -> None:
    shown = [page for _, pages in configuration["sections"]() for page in pages]
    pages = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")}
    records = {page for page in pages if re.match(r"adr/\d", page)}
    resources = {page for page in shown if page.startswith("reference/api/")}
    assert sorted(set(shown) - resources) == sorted(pages - records - {"index"})
    assert len(shown) == len(set(shown))
    assert len(resources) > 30


def test_navigation_for_users_is_short_and_builders_have_one_link(configuration: dict[str, Any]) -> None:
    tree = configuration["tree"]()
    assert len(tree["Use"]) + len(tree["Operate"]) <= 24
    assert next(iter(tree["More"])) == "builders"
    assert {"architecture", "adr/README", "testing", "asvs", "performance"} <= set(tree["More"]["builders"])


def test_every_call_has_a_request_and_its_response_on_the_page_of_its_resource(sources: Path) -> None:
    pages = {path: path.read_text() for path in (sources / "reference/api").glob("*.md")}
    text = "".join(pages.values())
    paths = document()["paths"]
    calls = [
        (method, path) for path, operations in paths.items() for method in METHODS if method in operations
    ]
    for method, path in calls:
        assert f">{method.upper()}</span> <code>{path}</code>" in text
    assert text.count("\n```sh\ncurl ") == len(calls)
    assert text.count("\n```json\n") > 0.8 * len(calls)
    overview = (sources / "reference/api.md").read_text()
    assert '<a id="get-v3-s2s-conversations-conversationid"></a>' in overview  # an address of the former page
    assert "[those of every call](../../guide/api.md#errors)" in text


def test_each_request_of_the_reference_is_valid_shell(sources: Path) -> None:
    text = "".join(path.read_text() for path in (sources / "reference/api").glob("*.md"))
    commands = "\n".join(re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert subprocess.run(["bash", "-n"], input=commands, text=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("page", "text", "shown"),
    [
        ("guide/api", "[a](people.md#roles)", "[a](people.md#roles)"),
        ("guide/api", "[a](../../README.md)", "[a](../quickstart.md)"),
        ("security", "[a](../SECURITY.md)", "[a](reporting.md)"),
        ("security", "[`t`](../tests/test_logs.py)", "`t`"),
        ("concepts", "[a](https://example.com/x.md)", "[a](https://example.com/x.md)"),
        ("guide/api", "[a](../contract.md#contract-6.4)", '<a href="../contract.html#contract-6.4">a</a>'),
        ("contract", "[a](#contract-6.4)", '<a href="#contract-6.4">a</a>'),
        ("contract", "[a](#6-events)", "[a](#6-events)"),
    ],
)
def test_link_leads_to_its_target_or_its_substitute(
    configuration: dict[str, Any], page: str, text: str, shown: str
) -> None:
    source = [text]
    configuration["_read"](None, page, source)
    assert source[0].partition("\n```{toctree}")[0] == shown


@pytest.mark.parametrize(
    ("page", "head"), [("changelog", "# Changelog\n"), ("reporting", "# Reporting a weakness\n")]
)
def test_a_page_that_is_a_files_place_has_the_files_text(
    configuration: dict[str, Any], page: str, head: str
) -> None:
    source = ["only its place"]
    configuration["_read"](None, page, source)
    assert source[0].startswith(head)
    assert "](security.md)" in source[0]


@pytest.mark.parametrize("page", ["cli"])
def test_long_page_is_generated_by_the_program(configuration: dict[str, Any], page: str) -> None:
    source = [(DOCS / f"reference/{page}.md").read_text()]
    configuration["_read"](None, f"reference/{page}", source)
    assert len(source[0].split()) > 5_000
    assert f"`deskwire reference {page}`" in source[0]


def test_former_pages_redirect_to_headings_that_exist(configuration: dict[str, Any]) -> None:
    for page, target in configuration["MOVED"].items():
        path, _, anchor = target.partition("#")
        found = DOCS / f"{path.removesuffix('.html')}.md"
        assert not (DOCS / f"{page}.md").exists(), page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


class Loaded(HTMLParser):
    """Collects the addresses that a page's elements are fetched from."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the address that this element fetches."""
        self.found += [value for name, value in attrs if name == LOADS.get(tag) and value]


def fetched(path: Path) -> list[str]:
    """Return the addresses outside the site that a browser would fetch for this file."""
    text = path.read_text(errors="replace")
    if path.suffix == ".html":
        parser = Loaded()
        parser.feed(text)
        found = parser.found
    elif path.suffix == ".js":
        found = re.findall(r"https?://[^\s\"']+", COMMENT.sub("", text))
    else:
        found = [address for pair in CSS_ADDRESS.findall(text) for address in pair]
    return [each for each in found if re.match(r"(?:[a-z]+:)?//", each) and each != NAMESPACE]


@needs_sphinx
def test_the_site_is_made_without_a_warning_and_fetches_nothing_from_elsewhere(
    sources: Path, tmp_path: Path
) -> None:
    """Slow, because it builds the whole site; warnings are broken links and pages that are in no navigation."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-b", "html"]
    done = subprocess.run(
        [
            *command,
            "-d",
            str(tmp_path / "trees"),
            "-c",
            str(DOCS / "site"),
            str(sources),
            str(tmp_path / "site"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    files = [
        path for path in (tmp_path / "site").rglob("*") if path.suffix in (".html", ".css", ".js", ".svg")
    ]
    assert len(files) > 40
    assert [(path.name, fetched(path)) for path in files if fetched(path)] == []
    assert (tmp_path / "site/_images/picture.svg").exists()
    index = (tmp_path / "site/searchindex.js").read_text()
    assert '"reference/api/webhooks"' in index
    assert 'url=webhooks.html#retries"' in (tmp_path / "site/guide/deliveries.html").read_text()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<link rel="stylesheet" href="https://fonts.example/x.css">'),
        ("a.html", '<script src="//cdn.example/x.js"></script>'),
        ("a.css", "@font-face { src: url('https://fonts.example/x.woff2') }"),
        ("a.css", '@import "https://fonts.example/x.css";'),
        ("a.js", 'fetch("https://stats.example/hit") // https://harmless.example'),
    ],
)
def test_resource_from_another_host_is_found(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert len(fetched(tmp_path / name)) == 1


def test_the_picture_is_plain_and_follows_the_readers_colours() -> None:
    picture = (DOCS / "picture.svg").read_text()
    assert "prefers-color-scheme: dark" in picture
    assert "<title" in picture
    assert re.findall(r"(?:href|url\()\W*(?:[a-z]+:)?//", picture) == []
    assert "<script" not in picture
