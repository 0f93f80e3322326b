"""Accessibility checks by axe (WCAG 2.2 AA and its best practices)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from playwright.sync_api import Page

from tests.support.root import ROOT

_TAGS: Final = {
    "type": "tag",
    "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}
_OF_COLOURS: Final = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
_SHOWN: Final = 160
"""Characters of a finding's element."""


@cache
def _source() -> str:
    return (ROOT / "tests/web/tools/node_modules/axe-core/axe.min.js").read_text()


_AT_REST: Final = """() => Promise.allSettled(
  document.getAnimations().filter(each => each instanceof CSSTransition).map(each => each.finished)
).then(() => undefined)"""


def findings(page: Page) -> list[str]:
    """Return the rules that a page violates, with the first elements, after its transitions have ended.

    Rules about colours are tried in light and in dark. With forced colours the system chooses them.
    """
    page.evaluate(_AT_REST)
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_source())
    found = _violations(page, _TAGS)
    page.emulate_media(color_scheme="dark")
    page.evaluate(_AT_REST)
    found += [f"dark: {each}" for each in _violations(page, _OF_COLOURS)]
    page.emulate_media(color_scheme="light")
    return found


def _violations(page: Page, rules: Mapping[str, Any]) -> list[str]:
    found = page.evaluate("only => axe.run(document, {runOnly: only})", rules)
    return [
        f"{each['id']} ({each['impact']}): {[node['html'][:_SHOWN] for node in each['nodes'][:3]]}"
        for each in found["violations"]
    ]
