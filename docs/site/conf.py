"""How Sphinx makes a site of `docs/` (ADR 23): `make site`.

The pages stay what they are elsewhere, plain Markdown with relative links. Here they get their navigation, and links
that leave `docs/` are led to the page that stands for their target.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent

project = "Deskwire"
copyright = "Deskwire"  # noqa: A001  # Sphinx's name for it
version = release = installed("deskwire")
extensions = ["myst_parser"]
exclude_patterns = ["site"]
html_theme = "furo"
html_title = f"Deskwire {version}"
html_static_path: list[str] = []
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"footer_icons": [], "top_of_page_buttons": []}
pygments_style = "friendly"
highlight_language = "none"
myst_heading_anchors = 4
myst_enable_extensions: list[str] = []
# The configuration of Prometheus and nginx has words that no lexer knows.
suppress_warnings = ["misc.highlighting_failure"]

NAVIGATION = {
    "Begin": ("quickstart", "concepts"),
    "Follow events": (
        "guide/webhooks",
        "guide/extensions",
        "guide/stream",
        "guide/lists-and-exports",
        "guide/examples",
        "guide/automation",
    ),
    "Use the API": (
        "guide/api",
        "guide/requests",
        "guide/clients",
        "guide/credentials",
        "guide/people",
        "guide/uploads",
    ),
    "Serve customers": (
        "guide/desk",
        "guide/desk-admin",
        "guide/desk-insights",
        "guide/desk-developers",
        "guide/inbox",
        "guide/agents-stream",
        "guide/contacts",
        "guide/search",
        "guide/tickets",
        "guide/workflows",
        "guide/surveys",
        "guide/reports",
        "guide/translations",
    ),
    "Operate": (
        "guide/provisioning",
        "guide/importing",
        "guide/deploy",
        "guide/helm",
        "guide/operating",
        "guide/commands",
        "guide/nodes",
        "guide/backup",
        "guide/retention",
        "guide/redaction",
        "guide/audit",
        "guide/monitoring",
        "security",
        "asvs",
        "reporting",
        "performance",
        "guarantees",
        "testing",
        "mutation",
    ),
    "Reference": (
        "contract",
        "decisions",
        "stream-protocol",
        "architecture",
        "glossary",
        "reference/api",
        "reference/events",
        "reference/errors",
        "reference/settings",
    ),
}
"""The order of pages, if pages of these names exist; other pages follow."""

PLACES = {"changelog": "CHANGELOG.md", "reporting": "SECURITY.md"}
"""Pages that are only the place of a file beside `docs/`."""

RENDERED = ("reference/api", "reference/cli")
"""Pages whose file is a short notice; the site shows the program's own output (`deskwire reference`) instead."""

ELSEWHERE = {"README.md": "quickstart", **{file: page for page, file in PLACES.items()}}
"""Files beside `docs/`, and the page that stands for each; other links out of it become plain text."""

MOVED = {
    "bugs-found": "changelog.html",
    "guide/audit-push": "guide/audit.html#push-the-trail-to-a-siem",
    "guide/contacts-and-snippets": "guide/contacts.html#snippets",
    "guide/containers": "guide/deploy.html#a-container",
    "guide/deliveries": "guide/webhooks.html#retries",
    "guide/demo": "quickstart.html#explore-the-demo",
    "guide/desk-learn": "guide/desk-insights.html",
    "guide/desk-run": "guide/desk-admin.html",
    "guide/desk-why": "guide/desk-developers.html",
    "guide/inbox-writing": "guide/inbox.html#replies",
    "guide/kubernetes": "guide/deploy.html#kubernetes",
    "guide/listen": "guide/commands.html#develop-a-receiver-deskwire-listen",
    "guide/lost-database": "guide/backup.html#a-lost-database-file",
    "guide/memory": "guide/contacts.html#memory",
    "guide/mirror": "guide/lists-and-exports.html#keeping-a-mirror",
    "guide/moving": "guide/importing.html",
    "guide/secret": "guide/credentials.html#the-installations-secret",
    "guide/sessions": "guide/credentials.html#sessions-of-browsers",
    "simulation": "testing.html#simulation",
    "soak": "testing.html#soak",
}
"""Previous pages, and the address that each of them redirects to."""

_LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\((?![a-z]+:)([^)\s]+)\)")


def navigation() -> str:
    """The site's tree of pages, hidden in the text and shown beside it."""
    return "".join(_tree(caption, pages) for caption, pages in sections())


def sections() -> Iterator[tuple[str, list[str]]]:
    """Every page under its caption: those that are named in their order, then the others of their folder."""
    everything = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")} - {"index"}
    named = {page for pages in NAVIGATION.values() for page in pages}
    rest = sorted(everything - named)
    for caption, pages in NAVIGATION.items():
        shown = [page for page in pages if page in everything]
        if caption == "Reference":
            shown += [page for page in rest if page.startswith("reference/")]
        yield caption, shown
    yield "Further", [page for page in rest if not page.startswith(("reference/", "adr/"))]
    yield "Decisions", ["adr/README"]


def _tree(caption: str, pages: list[str], options: str = ":hidden:") -> str:
    lines = "\n".join(pages)
    return f"\n```{{toctree}}\n:caption: {caption}\n{options}\n\n{lines}\n```\n" if pages else ""


def _read(_app: Any, docname: str, source: list[str]) -> None:
    folder, text = (DOCS / docname).parent, source[0]
    if docname in PLACES:
        folder, text = DOCS.parent, (DOCS.parent / PLACES[docname]).read_text()
    if docname in RENDERED:
        text = import_module(f"deskwire.commands.{docname.replace('/', '.')}").markdown()
    text = _LINK.sub(lambda link: _led(folder, docname, link), text)
    if docname == "index":
        text += navigation()
    if docname == "adr/README":
        records = sorted(path.stem for path in (DOCS / "adr").glob("0*.md"))
        text += _tree("Records", records)
    source[0] = text


def _led(folder: Path, docname: str, link: re.Match[str]) -> str:
    """A link of a text in `folder` as it is on the page `docname`."""
    words, (target, mark, anchor) = link[1], link[2].partition("#")
    path = (folder / target).resolve() if target else DOCS / f"{docname}.md"
    if path.parent == DOCS.parent and path.name in ELSEWHERE:
        path = DOCS / f"{ELSEWHERE[path.name]}.md"
    elif not path.is_relative_to(DOCS):
        return words
    shown = os.path.relpath(path, (DOCS / docname).parent) if target else ""
    if anchor and f'<a id="{anchor}">' in path.read_text():  # MyST knows no anchors but those of headings
        return f'<a href="{re.sub(r"[.]md$", ".html", shown)}#{anchor}">{words}</a>'
    return f"[{words}]({shown}{mark}{anchor})"


def _redirect(app: Any, failure: Exception | None) -> None:
    """Write a page that redirects at the address of each previous page."""
    if failure is None and app.builder.format == "html":
        for page, target in MOVED.items():
            address = os.path.relpath(target, Path(page).parent)
            refresh = f'<meta charset="utf-8"><meta http-equiv="refresh" content="0; url={address}">'
            text = f'<!doctype html>{refresh}<title>Moved</title><a href="{address}">Moved</a>\n'
            (Path(app.outdir) / f"{page}.html").write_text(text)


def setup(app: Any) -> None:
    """Have every page's text pass through `_read`, and write the redirects at the end."""
    app.connect("source-read", _read)
    app.connect("build-finished", _redirect)
