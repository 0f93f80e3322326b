"""How Sphinx makes a site of `docs/` (ADR 23): `make site`.

The pages stay what they are elsewhere, plain Markdown with relative links. Here they get their navigation, and links
that leave `docs/` are led to the page that stands for their target. `sources.py` adds the pages of the API reference.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import api_pages

DOCS = Path(__file__).parent.parent

project = "Deskwire"
copyright = "Deskwire"  # noqa: A001  # Sphinx's name for it
version = release = installed("deskwire")
extensions = ["myst_parser"]
exclude_patterns = ["site"]
html_theme = "furo"
html_title = f"Deskwire {version}"
html_static_path = ["static"]
html_css_files = ["reference.css"]
html_search_scorer = str(Path(__file__).parent / "scorer.js")
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"footer_icons": [], "top_of_page_buttons": []}
pygments_style = "friendly"
highlight_language = "none"
myst_heading_anchors = 4
myst_enable_extensions: list[str] = []
# The configuration of Prometheus and nginx has words that no lexer knows.
suppress_warnings = ["misc.highlighting_failure"]

NAVIGATION: dict[str, dict[str, tuple[str, ...]]] = {
    "Start": {"quickstart": (), "tutorial": (), "concepts": ()},
    "Use": {
        "guide/api": ("guide/requests", "guide/uploads"),
        "guide/channels": ("guide/extensions", "guide/agents-stream", "guide/customer-stream"),
        "guide/webhooks": (),
        "guide/stream": (),
        "guide/lists-and-exports": (),
        "guide/clients": ("guide/sdk-python", "guide/sdk-typescript"),
        "guide/examples": (
            "guide/django",
            "guide/fastapi",
            "guide/rails",
            "guide/laravel",
            "guide/nextjs",
            "guide/go",
            "guide/automation",
        ),
        "guide/widget": (
            "guide/widget-channels",
            "guide/customer-sessions",
            "guide/customer-api",
            "guide/customer-js",
        ),
        "guide/desk": ("guide/desk-admin", "guide/desk-insights", "guide/desk-developers"),
        "guide/inbox": (
            "guide/waiting",
            "guide/mentions",
            "guide/contacts",
            "guide/search",
            "guide/translations",
        ),
        "guide/tickets": (),
        "guide/workflows": (),
        "guide/surveys": ("guide/reports",),
        "guide/importing": (),
    },
    "Operate": {
        "guide/deploy": ("guide/provisioning", "guide/helm", "support"),
        "guide/operating": ("guide/commands",),
        "guide/nodes": (),
        "guide/backup": (),
        "guide/monitoring": (),
        "guide/people": (
            "guide/single-sign-on",
            "guide/second-factor",
            "guide/credentials",
            "guide/session-limits",
            "guide/audit",
        ),
        "guide/retention": ("guide/redaction",),
        "security": ("reporting",),
    },
    "Look up": {
        "reference/api": (),  # and a page for each resource
        "reference/events": (),
        "reference/errors": (),
        "reference/permissions": (),
        "reference/settings": (),
        "reference/cli": (),
        "reference/metrics": (),
        "reference/surveys": (),
        "contract": ("decisions", "stream-protocol"),
        "changelog": ("compatibility",),
    },
    "More": {
        "builders": (
            "guarantees",
            "performance",
            "architecture",
            "adr/README",
            "testing",
            "mutation",
            "asvs",
            "dependencies",
            "releasing",
            "glossary",
        )
    },
}
"""The order of pages with the pages below each, if pages of these names exist; others follow the last caption."""

INDEX = {
    "guide/api": ("idempotency key", "pagination", "rate limit", "event feed"),
    "guide/backup": ("restore", "disaster recovery"),
    "guide/second-factor": ("two-factor authentication", "totp", "passkey", "recovery code"),
    "guide/credentials": ("rotate secret", "server key", "session", "machine credential"),
    "guide/deploy": ("docker", "container", "kubernetes", "systemd", "tls"),
    "guide/lists-and-exports": ("export", "mirror", "data warehouse"),
    "guide/monitoring": ("prometheus", "metrics", "alerts"),
    "guide/people": ("roles", "permissions", "members"),
    "guide/retention": ("gdpr", "erasure", "delete contact"),
    "guide/single-sign-on": ("oidc", "sso", "keycloak", "entra", "identity provider"),
    "guide/stream": ("websocket", "pusher", "resume", "takeover"),
    "guide/webhooks": ("verify signature", "webhook signature", "verify webhook", "retries", "redeliver"),
    "tutorial": ("chat", "chat widget"),
}
"""Words of readers that lead the search to a page, before all other results."""

PLACES = {"changelog": "CHANGELOG.md", "reporting": "SECURITY.md"}
"""Pages that are only the place of a file beside `docs/`."""

RENDERED = "reference/cli"
"""A page whose file is a short notice; the site shows the program's own output (`deskwire reference`) instead."""

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
    return "".join(_tree(caption, list(pages)) for caption, pages in tree().items())


def tree() -> dict[str, dict[str, list[str]]]:
    """Return the pages under each caption, with those below each; pages that are not named follow the last one."""
    everything = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")} - {"index"}
    found = {
        caption: {
            page: [each for each in below if each in everything]
            for page, below in pages.items()
            if page in everything
        }
        for caption, pages in NAVIGATION.items()
    }
    named = {each for pages in found.values() for page, below in pages.items() for each in (page, *below)}
    found["Look up"]["reference/api"] = list(api_pages.pages())
    rest = sorted(each for each in everything - named if not re.match(r"adr/\d", each))
    found["More"] |= {each: [] for each in rest}
    return found


def sections() -> Iterator[tuple[str, list[str]]]:
    """Every page under its caption, each after the page that it is below."""
    for caption, pages in tree().items():
        yield caption, [each for page, below in pages.items() for each in (page, *below)]


def _tree(caption: str | None, pages: list[str]) -> str:
    named = [f":caption: {caption}"] if caption else []
    lines = "\n".join((*named, ":hidden:", "", *(f"/{page}" for page in pages)))
    return f"\n```{{toctree}}\n{lines}\n```\n" if pages else ""


def _read(_app: Any, docname: str, source: list[str]) -> None:
    folder, text = (DOCS / docname).parent, source[0]
    if docname in PLACES:
        folder, text = DOCS.parent, (DOCS.parent / PLACES[docname]).read_text()
    if docname == RENDERED:
        text = import_module(f"deskwire.commands.{docname.replace('/', '.')}").markdown()
    text = _LINK.sub(lambda link: _led(folder, docname, link), text)
    entries = "".join(f"\n```{{index}} ! {entry}\n```\n" for entry in INDEX.get(docname, ()))
    text = text.replace("\n", f"\n{entries}\n", 1)
    if docname == "index":
        text += navigation()
    elif docname == "adr/README":
        text += _tree(None, [f"adr/{path.stem}" for path in sorted((DOCS / "adr").glob("0*.md"))])
    else:
        text += "".join(_tree(None, pages.get(docname, [])) for pages in tree().values())
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
    if (
        anchor and path.exists() and f'<a id="{anchor}">' in path.read_text()
    ):  # MyST knows no anchors but those of headings
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
