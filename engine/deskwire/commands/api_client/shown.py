"""Text of others on a terminal: nothing in it may move the cursor, change colours, or pose as ours."""

from __future__ import annotations


def visible(text: str) -> str:
    """`text` with everything that is not plainly printable as an escape, such as `\\x1b`, line ends included.

    That covers C0 and C1 controls, and the format characters that reorder or hide text (Unicode Cf).
    """
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def visible_lines(text: str) -> list[str]:
    """Return the lines of a text, each as `visible` makes it."""
    return [visible(line) for line in text.split("\n")]
