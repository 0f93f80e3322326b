"""The main pages of the desk, and the elements of a page that reach out of its window."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Page, expect

PAGES: Final = (
    "inbox/all",
    "tickets",
    "contacts",
    "settings/members",
    "settings/account",
    "settings/notifications",
    "settings/channels",
    "reports",
    "surveys",
    "webhooks",
    "console",
)
_WIDER: Final = """() => [...document.querySelectorAll("body *")].filter(each => each.checkVisibility() && !each.closest(".sr, pre, .table-box, .editor, svg"))
  .map(each => [each, each.getBoundingClientRect()]).filter(([, box]) => box.width > 1 && (box.left < -1 || box.right > innerWidth + 1))
  .map(([each]) => each.outerHTML.slice(0, 150))"""
"""Return the elements that reach out of the window. Tables and code scroll within their own boxes."""


def overflow(page: Page) -> list[str]:
    """Return the elements that reach out of the window at its sides, once the page has its data."""
    expect(page.locator("main [aria-busy=true]")).to_have_count(0)
    expect(page.get_by_role("heading", level=1).first).to_be_visible()
    found: list[str] = page.evaluate(_WIDER)
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append("The page can be scrolled sideways.")
    return found
