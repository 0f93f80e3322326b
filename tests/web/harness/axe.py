"""Accessibility checks by axe (WCAG 2.2 AA and its best practices)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from playwright.sync_api import Page

from tests.support.root import ROOT

SCHEMES: Final[Mapping[str, Mapping[str, Any]]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "forced": {"forced_colors": "active"},
}
"""Colour schemes, as options of a window."""

_TAGS: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_SHOWN: Final = 160
"""Characters of a finding's element."""


@cache
def _source() -> str:
    return (ROOT / "tests/web/tools/node_modules/axe-core/axe.min.js").read_text()


_AT_REST: Final = """() => Promise.allSettled(
  document.getAnimations().filter(each => each instanceof CSSTransition).map(each => each.finished)
).then(() => undefined)"""


def findings(page: Page) -> list[str]:
    """Return the rules that a page violates, with the first elements, after its transitions have ended."""
    page.evaluate(_AT_REST)
    page.evaluate(_source())
    found = page.evaluate("tags => axe.run(document, {runOnly: tags})", _TAGS)
    return [
        f"{each['id']} ({each['impact']}): {[node['html'][:_SHOWN] for node in each['nodes'][:3]]}"
        for each in found["violations"]
    ]
