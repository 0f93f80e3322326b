"""Text of others on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.commands.shell.output import visible, visible_lines


@given(st.text())
def test_shown_text_can_not_control_a_terminal(text: str) -> None:
    assert visible(text).isprintable()
    assert all(line.isprintable() for line in visible_lines(text))
    assert len(visible_lines(text)) == text.count("\n") + 1


@given(st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126)) | st.just("Grüße 👋"))
def test_plain_text_is_shown_unchanged(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b31m", "\\x9b31m"),
        ("a\rb", "a\\rb"),
        ("\u202egnp", "\\u202egnp"),
        ("\x7f\b", "\\x7f\\x08"),
    ],
)
def test_control_characters_are_shown_as_escapes(text: str, shown: str) -> None:
    assert visible(text) == shown
