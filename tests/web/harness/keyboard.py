"""Keyboard-only use of a page."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Locator, Page, expect

_STOPS_MAX: Final = 80
_RING: Final = """element => {
  const drawn = each => { const style = getComputedStyle(each); return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0; };
  return drawn(element) || (element.matches("input[type=radio]") && drawn(element.nextElementSibling));
}"""
"""Return whether a focus ring is drawn around the element, or around the words of a selected segment."""


class Keys:
    """Operates a page by keys alone."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        """Replace the text of the focused field."""
        self.press("Control+a")
        self.page.keyboard.type(text)

    def to(self, wanted: Locator, key: str = "Tab") -> None:
        """Press a key until this has a visible focus; fail if it never does."""
        expect(wanted).to_be_visible()
        for _ in range(_STOPS_MAX):
            if self.at(wanted):
                break
            self.press(key)
        self.stands_at(wanted)

    def stands_at(self, wanted: Locator) -> None:
        """Fail unless this has a visible focus."""
        expect(wanted).to_be_focused()
        assert wanted.evaluate(_RING), f"nobody sees that {wanted} has the focus"

    def at(self, wanted: Locator) -> bool:
        """Return True if this has the focus."""
        return bool(wanted.evaluate("element => element === document.activeElement"))

    def choose(self, button: Locator, item: str) -> None:
        """Open a menu, and choose the item that begins with these letters."""
        self.to(button)
        self.press("Enter")
        entry = self.page.get_by_role("menuitem", name=item)
        self.to(entry, "ArrowDown")
        self.press("Enter")
