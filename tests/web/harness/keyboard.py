"""The keyboard as somebody uses it who has nothing else."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Locator, Page, expect

_STOPS_MAX: Final = 80
_RING: Final = """element => {
  const drawn = each => { const style = getComputedStyle(each); return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0; };
  return drawn(element) || (element.matches("input[type=radio]") && drawn(element.nextElementSibling));
}"""
"""Whether a ring is drawn around the element; of a segment that is chosen, around its words."""


class Keys:
    """Goes through a page by keys alone."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        """Write into what has the focus, instead of what is written there."""
        self.press("Control+a")
        self.page.keyboard.type(text)

    def to(self, wanted: Locator, key: str = "Tab") -> None:
        """Press a key until this has the focus; fail if it never has, or if one does not see that it has."""
        expect(wanted).to_be_visible()
        for _ in range(_STOPS_MAX):
            if self.at(wanted):
                break
            self.press(key)
        self.stands_at(wanted)

    def stands_at(self, wanted: Locator) -> None:
        """Fail unless this has the focus, and one sees it."""
        expect(wanted).to_be_focused()
        assert wanted.evaluate(_RING), f"nobody sees that {wanted} has the focus"

    def at(self, wanted: Locator) -> bool:
        """Return True if this has the focus."""
        return bool(wanted.evaluate("element => element === document.activeElement"))

    def choose(self, button: Locator, item: str) -> None:
        """Go to the button of a menu, and pick what begins with these letters."""
        self.to(button)
        self.press("Enter")
        entry = self.page.get_by_role("menuitem", name=item)
        self.to(entry, "ArrowDown")
        self.press("Enter")
