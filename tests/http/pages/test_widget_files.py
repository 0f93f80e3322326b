"""The widget's files: how large they are, what may not stand in them, and that every language has every text."""

from __future__ import annotations

import gzip
import re
from importlib.resources import files
from pathlib import Path

import pytest

from deskwire.http.api.output.static import FileTree, load_widget_tree
from deskwire.http.pages.widget import loader_script, shipped_text
from deskwire.http.pages.widget_look import SHIPPED
from tests.support.root import ROOT

FOLDER = ROOT / "http/deskwire/http/pages/widget"
MODULES = sorted(path for path in FOLDER.glob("**/*.js") if "built" not in path.parts)
OWN = [path for path in MODULES if "core" not in path.parts]
TEXTS = sorted((FOLDER / "texts").glob("*.js"))
KB = 1024
LOADER_MAX = 1.5 * KB
PANEL_MAX = 25.6 * KB
LATER_MAX = 5 * KB
MARKUP_MAX = 4.5 * KB
SETTINGS = {
    "id": "chn_01KZ000000000000000000CHAN",
    "enabled": True,
    "colour": "#1f5eff",
    "ink": "#ffffff",
    "side": "right",
    "query": "lang=de",
    "open": "Chatten Sie mit dem Kundendienst",
}

FORBIDDEN = {
    "markup made of text": r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerously|createContextualFragment|srcdoc",
    "code made of text": r"\beval\(|new Function|setTimeout\(\s*[\"'`]|javascript:",
    "a style in markup": r"\bstyle=",
    "another host": r"https?://(?!www\.w3\.org/|\$)[a-z]|[\"'`]//",
}
"""Code that the page's policy refuses, or that would load from other hosts."""


def tree() -> FileTree:
    return load_widget_tree(files("deskwire.http.pages"))


def code(path: Path) -> str:
    """A module as it is served, without its comments."""
    static = tree().files[f"widget/{path.relative_to(FOLDER).as_posix()}"]
    return static.body.decode()


def packed(name: str) -> int:
    """The bytes of a served file, compressed."""
    return len(gzip.compress(tree().files[f"widget/{name}"].body, mtime=0))


def test_loader_with_the_settings_of_a_channel_stays_within_its_budget() -> None:
    script = loader_script(tree().files["widget/loader.js"], SETTINGS)
    size = len(gzip.compress(script, mtime=0))
    assert b"chn_01KZ" in script
    assert size <= LOADER_MAX, size


@pytest.mark.parametrize("language", SHIPPED)
def test_everything_that_opens_the_panel_stays_within_its_budget(language: str) -> None:
    static = tree()
    modules = ["widget/built/panel.js", *static.imports("widget/built/panel.js")]
    sizes = {name: packed(name.removeprefix("widget/")) for name in modules}
    sizes |= {name: packed(name) for name in ("panel.html", "built/panel.css", f"texts/{language}.js")}
    assert len(modules) <= 2, modules
    assert sum(sizes.values()) <= PANEL_MAX, sizes


def test_views_that_are_loaded_later_are_small() -> None:
    eager = {"widget/built/panel.js", *tree().imports("widget/built/panel.js")}
    later = [name for name in tree().files if name.startswith("widget/built/") and name not in eager]
    sizes = {name: packed(name.removeprefix("widget/")) for name in later if name.endswith(".js")}
    markup = sizes.pop(next(name for name in sizes if "/markup-" in name))  # with the first formatted message
    assert markup <= MARKUP_MAX, markup
    assert sum(sizes.values()) <= LATER_MAX, sizes


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_every_module_is_typed_and_documented(module: Path) -> None:
    assert module.read_text().startswith("// @ts-check\n/**")


@pytest.mark.parametrize("module", OWN, ids=lambda path: path.name)
@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_contains_code_that_the_policy_forbids(module: Path, what: str) -> None:
    found = re.search(FORBIDDEN[what], code(module))
    assert found is None, f"{what}: {found and found[0]}"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_comments_are_left_out_and_lines_keep_their_numbers(module: Path) -> None:
    source, served = (
        text.split("\n") for text in (module.read_text(), tree().files[_name(module)].body.decode())
    )
    assert len(source) == len(served)
    for before, after in zip(source, served, strict=True):
        if "//" not in before and "*" not in before:
            assert after == before
    assert not any(re.match(r"\s*(//|/\*)", line) or "/**" in line for line in served)


def _name(module: Path) -> str:
    return f"widget/{module.relative_to(FOLDER).as_posix()}"


def test_shipped_languages_are_those_with_texts() -> None:
    assert {path.stem for path in TEXTS} == set(SHIPPED)
    assert len(SHIPPED) >= 10


@pytest.mark.parametrize("module", TEXTS, ids=lambda path: path.stem)
def test_every_language_has_every_text_of_its_own(module: Path) -> None:
    def texts(path: Path) -> dict[str, str]:
        return dict(re.findall(r"^ +(\w+): (.+),$", path.read_text(), re.MULTILINE))

    english, own = texts(FOLDER / "texts/en.js"), texts(module)
    assert list(own) == list(english)
    if module.stem != "en":
        same = {name for name in own if own[name] == english[name]}
        # Words that are the same in another language, such as "Name" in German.
        assert len(same) <= 4, same
    for name, text in english.items():
        assert own[name].count("${") == text.count("${"), name


@pytest.mark.parametrize("language", SHIPPED)
@pytest.mark.parametrize(
    "name", ["open", "close", "channel_not_found", "channel_disabled", "origin_not_allowed"]
)
def test_service_finds_the_texts_that_it_writes_into_pages(language: str, name: str) -> None:
    assert len(shipped_text(tree(), language, name)) > 3
