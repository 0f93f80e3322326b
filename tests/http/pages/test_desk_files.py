"""The desk's files: how many, how large, and what may not stand in them."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
import trio

from deskwire.engine.events.types import CATALOG, CONFIDENTIAL, LISTABLE, NAMEABLE, STORED
from deskwire.http.api.output.static import FileTree, OfFolders, load_tree
from tests.support.root import ROOT

FOLDER = ROOT / "http/deskwire/http/pages/desk"
MODULES = sorted(path for path in FOLDER.glob("**/*.js") if not {"vendor", "languages"} & set(path.parts))
"""The modules without those of other languages than English, which tests/languages compares with their sources."""
EAGER_MAX = 13
LINES_MAX = 600
KB = 1024

FORBIDDEN = {
    "markup made of text": r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerously|createContextualFragment",
    "code made of text": r"\beval\(|new Function|setTimeout\(\s*[\"'`]|javascript:",
    "a style in markup": r"\bstyle=",
    "another host": r"https?://(?!www\.w3\.org/)|[\"'`]//",
}
"""Code that the page's policy refuses, or that would load from other hosts."""

VENDORED = {
    "ciphers.js": "20fb2fce0f049348",
    "preact.js": "2f05731375b7880b",
}
"""The beginning of the SHA-256 of each vendored file. `make vendor` makes the files from the versions in tests/web/tools;
a new version needs a new digest here."""


def tree() -> FileTree:
    return load_tree(FOLDER)


def told(text: str) -> str:
    """A module without its comments, as far as these tests need that."""
    return re.sub(r"(?m)/\*\*[\s\S]*?\*/|^\s*//.*$|\s// .*$", "", text)


def imported(module: Path) -> Iterator[Path]:
    """The files that a module imports, at once or later."""
    for target in re.findall(r"""(?:from|import)\s*\(?\s*"(\.[^"]+)\"""", told(module.read_text())):
        yield (module.parent / target).resolve()


def test_few_modules_run_before_the_first_list() -> None:
    eager = tree().eager()
    assert {"app.js", "core/api.js", "core/session.js", "core/store.js", "vendor/preact.js"} <= set(eager)
    assert len(eager) <= EAGER_MAX, eager


def test_modules_before_the_first_list_are_small() -> None:
    files = tree()
    scripts = sum(len(files.files[name].packed) for name in files.eager())
    assert scripts <= 61 * KB, scripts
    assert len(files.files["style.css"].packed) <= 10 * KB


@pytest.mark.parametrize("language", sorted({*tree().languages} - {"en"}))
def test_another_language_costs_little_more_before_the_first_list(language: str) -> None:
    english, files = tree(), tree().in_language(language)
    assert files.eager() == english.eager()
    assert sum(len(files.files[name].packed) for name in files.eager()) <= 61.5 * KB


@pytest.mark.parametrize("language", sorted({*tree().languages} - {"en"}))
def test_modules_of_another_language_are_small(language: str) -> None:
    own = [path for path in (FOLDER / "languages" / language).glob("**/*.js")]
    assert len(gzip.compress(b"".join(path.read_bytes() for path in own))) <= 45 * KB


def test_modules_of_one_page_are_small() -> None:
    files = tree().files
    pages = re.findall(r'import\("\./([^"]+)"\)', (FOLDER / "pages.js").read_text())
    assert len(pages) > 20
    entries = {FOLDER / name for name in pages}
    entries |= {part for page in entries for part in _lazy_parts(page)}
    for entry in entries:
        own = {each.relative_to(FOLDER).as_posix() for each in _own(entry)}
        assert sum(len(files[name].packed) for name in own) <= 25 * KB, own
    assert len(files["pages.css"].packed) <= 10 * KB
    assert len(files["ui/chart-layout.js"].packed) + len(files["ui/chart.js"].packed) <= 8 * KB


def _own(entry: Path) -> set[Path]:
    """The modules of an entry's own group that it loads at once, without the texts, which all pages of the group share."""
    found, left = set(), [entry]
    while left:
        module = left.pop()
        if module in found or module.parent != entry.parent or module.name.endswith("texts.js"):
            continue
        found.add(module)
        left += set(imported(module)) - _lazy(module)
    return found


def _lazy(module: Path) -> set[Path]:
    """The modules that a module imports only when they are needed."""
    targets = re.findall(r"""import\(\s*"(\.[^"]+)"\)""", told(module.read_text()))
    return {(module.parent / target).resolve() for target in targets}


def _lazy_parts(page: Path) -> set[Path]:
    """The parts of a page's own group that are loaded when they are first shown, and their parts."""
    found: set[Path] = set()
    left = [page]
    while left:
        own = {part for module in _own(left.pop()) for part in _lazy(module) if part.parent == page.parent}
        left += own - found
        found |= own
    return found


def test_all_modules_stay_within_the_growth_limit_of_the_wheel() -> None:
    whole = sum(
        path.stat().st_size
        for path in FOLDER.glob("**/*")
        if path.is_file() and path.suffix not in {".woff2", ".ftl"} and "languages" not in path.parts
    )
    assert len(gzip.compress(b"".join(path.read_bytes() for path in MODULES))) <= 400 * KB
    assert whole <= 1600 * KB, whole


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_every_module_is_typed_documented_and_not_too_long(module: Path) -> None:
    text = module.read_text()
    assert text.startswith("// @ts-check\n/**")
    # texts.js is a table; the type checker alone reads types.js
    if module.name not in {"texts.js", "texts-lazy.js", "types.js"}:
        assert len(text.splitlines()) <= LINES_MAX


@pytest.mark.parametrize("module", [*MODULES, FOLDER / "index.html"], ids=lambda path: path.name)
@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_contains_code_that_the_policy_forbids(module: Path, what: str) -> None:
    found = re.search(FORBIDDEN[what], told(module.read_text()))
    assert found is None, f"{what}: {found and found[0]}"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_every_import_of_a_module_exists(module: Path) -> None:
    for target in imported(module):
        assert target.is_file(), target
        assert target.is_relative_to(FOLDER)


def test_no_module_is_left_that_nothing_imports() -> None:
    reached = {
        FOLDER / name
        for name in (
            "app.js",
            "core/feed-worker.js",
            "core/types.js",
            "ui/chart.js",
            "shell/notification-worker.js",
        )
    }
    for module in MODULES:
        reached |= set(imported(module))
    assert set(MODULES) - reached == set()


def test_the_worker_is_the_one_that_the_feed_names() -> None:
    assert 'new URL("./feed-worker.js", import.meta.url)' in (FOLDER / "core/feed.js").read_text()


def test_vendored_files_match_their_record_and_have_their_licences_beside_them() -> None:
    for name, recorded in VENDORED.items():
        assert sha256((FOLDER / "vendor" / name).read_bytes()).hexdigest()[:16] == recorded, name
    for name in ("preact", "htm", "preact-signals", "preact-signals-core"):
        assert (FOLDER / f"vendor/{name}.LICENSE").read_text().strip()


def test_the_name_of_all_files_changes_with_any_of_them(tmp_path: Path) -> None:
    def named(**files: str) -> str:
        for path in tmp_path.iterdir():
            path.unlink()
        for name, text in files.items():
            (tmp_path / f"{name}.js").write_text(text)
        return load_tree(tmp_path).name

    names = [
        named(a="1", b="2"),
        named(a="1", b="3"),
        named(a="1", c="2"),
        named(a="12"),
        named(a="1", b="2"),
    ]
    assert names[0] == names[-1]
    assert len(set(names)) == len(names) - 1


async def test_files_of_a_folder_are_loaded_again_only_after_a_change(tmp_path: Path) -> None:
    module = tmp_path / "part/a.js"
    module.parent.mkdir()
    module.write_text("1")
    (tmp_path / "part/.#a.js").symlink_to("an-editors-lock")
    loaded = list[FileTree]()

    def load() -> FileTree:
        loaded.append(load_tree(tmp_path))
        return loaded[-1]

    files = OfFolders(load, tmp_path)
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(files.get)
    assert len(loaded) == 1
    replacement = tmp_path / "a.js.new"
    replacement.write_text("2")
    replacement.rename(module)
    assert (await files.get()).files["part/a.js"].body == b"2"
    (tmp_path / "languages").mkdir()
    (tmp_path / "languages/languages.json").write_text('{"en": {"name": "English", "direction": "ltr"}}')
    assert [*(await files.get()).languages] == ["en"]
    module.unlink()
    assert (await files.get()).files == {}
    assert len(loaded) == 4


def test_selectable_types_in_the_desk_are_those_that_an_endpoint_may_list() -> None:
    source = (FOLDER / "developers/event-types.js").read_text()
    parts = {
        name: re.findall(r'"([a-z.]+)"', body)
        for name, body in re.findall(r"export const ([A-Z]+) = \[([^\]]*)\]", source)
    }
    assert set(parts["CONTRACT"]) == STORED
    assert set(parts["TYPING"]) == {name for name in LISTABLE if name in CATALOG} - STORED
    assert set(parts["EXTENSIONS"]) == NAMEABLE
    assert set(parts["INTERNAL"]) == CONFIDENTIAL
