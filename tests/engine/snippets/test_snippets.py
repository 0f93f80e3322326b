"""The texts that a snippet may have, and the members who may change it."""

from __future__ import annotations

import pytest

from deskwire.engine.accounts.people import PERMISSIONS
from deskwire.engine.accounts.teams import Team, TeamMember
from deskwire.engine.core.errors import Forbidden
from deskwire.engine.snippets.snippet import (
    PLACEHOLDERS,
    Editor,
    Snippet,
    SnippetAuthor,
    unknown_placeholders,
)

MINE = Team("team_1", 1, "Mine", 0, 0, (TeamMember(7, "usr_7", "Ada"),), 1)
OTHERS = Team("team_2", 1, "Others", 0, 0, (TeamMember(8, "usr_8", "Bea"),), 2)


def snippet(author: int) -> Snippet:
    """Return a snippet of that author's."""
    return Snippet(1, "snp_1", 1, "hi", "Hello", "Hello", None, None, SnippetAuthor(author, "usr", "A"), 0, 0)


def may(editor: Editor, author: int, team: Team | None) -> bool:
    """Whether the snippet of an author and a team may be changed."""
    try:
        editor.check_change(snippet(author), team)
    except Forbidden:
        return False
    return True


def test_unknown_placeholder_in_braces_is_found_and_named_once() -> None:
    text = "Hi {contact.name}, {name}! {agent.nmae} {name} - {agent.name}"
    assert unknown_placeholders(text) == ("name", "agent.nmae")
    assert unknown_placeholders(" ".join(f"{{{name}}}" for name in PLACEHOLDERS)) == ()


@pytest.mark.parametrize(
    "text", ['{"a": 1}', "{}", "{ contact.name }", "{1}", "{{", "f() { return; }", "{a-b}"]
)
def test_other_braces_are_text(text: str) -> None:
    assert unknown_placeholders(text) == ()


def test_agent_changes_its_own_snippets_and_those_of_its_teams() -> None:
    agent = Editor(7, PERMISSIONS["agent"])
    assert may(agent, 7, None)
    assert may(agent, 7, OTHERS)
    assert may(agent, 8, MINE)
    assert not may(agent, 8, OTHERS)
    assert not may(agent, 8, None)


@pytest.mark.parametrize("role", ["admin", "owner"])
def test_an_admin_changes_all(role: str) -> None:
    assert may(Editor(9, PERMISSIONS[role]), 8, OTHERS)
    Editor(9, PERMISSIONS[role]).check_team(OTHERS)


def test_a_teams_snippets_are_made_by_its_members() -> None:
    Editor(7, PERMISSIONS["agent"]).check_team(MINE)
    Editor(7, PERMISSIONS["agent"]).check_team(None)
    with pytest.raises(Forbidden, match="made by its members"):
        Editor(7, PERMISSIONS["agent"]).check_team(OTHERS)
