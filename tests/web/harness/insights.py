"""Data and checks for the pages of surveys, workflows and translations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from playwright.sync_api import Page, expect

from tests.web.harness.desk import Desk
from tests.web.harness.stage import PASSWORD, Stage

DEFINITION: Final[Mapping[str, Any]] = {
    "schemaVersion": "2.0",
    "title": "After the chat",
    "languages": ["en"],
    "primaryLanguage": "en",
    "questions": [
        {"id": "score", "type": "nps", "title": {"en": "Would you recommend us?"}, "required": True},
        {"id": "why", "type": "text", "title": {"en": "Why?"}},
        {
            "id": "plan",
            "type": "single_choice",
            "title": {"en": "Your plan?"},
            "choices": [{"id": "free", "label": {"en": "Free"}}, {"id": "pro", "label": {"en": "Pro"}}],
        },
    ],
    "logic": [],
    "thankYou": {"en": "Thank you!"},
}
FLOWS: Final[Sequence[Mapping[str, Any]]] = [
    {
        "id": "main",
        "actions": [
            {"id": 1, "type": "message", "text": "Hello!"},
            {
                "id": 2,
                "type": "buttons",
                "text": "What is it about?",
                "options": [
                    {"id": "order", "label": "My order", "goto": "order"},
                    {"id": "other", "label": "Something else"},
                ],
            },
            {"id": 3, "type": "hand_off"},
        ],
    },
    {
        "id": "order",
        "actions": [
            {
                "id": 4,
                "type": "form",
                "text": "Which one?",
                "fields": [{"id": "number", "type": "text", "label": "Order number", "required": True}],
            },
            {"id": 5, "type": "set_attributes", "attributes": {"topic": "order"}},
            {"id": 6, "type": "close"},
        ],
    },
]


def survey(stage: Stage, name: str, *answers: Mapping[str, Any]) -> dict[str, Any]:
    """Create a survey with these responses, and return it."""
    body = {"name": name, "definition": DEFINITION}
    made: dict[str, Any] = stage.owner.post("/engagement/surveys", json=body).raise_for_status().json()
    for each in answers:
        path = f"/s2s/surveys/{made['id']}/responses"
        stage.s2s.post(path, json={"answers": each}).raise_for_status()
    return made


def workflow(stage: Stage, name: str, waiting: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Create a workflow that waits in these conversations, and return it."""
    body = {"name": name, "trigger": {"type": "manual"}, "flows": FLOWS}
    made: dict[str, Any] = stage.owner.post("/workflows", json=body).raise_for_status().json()
    for each in waiting:
        path = f"/s2s/conversations/{each['id']}/workflow/start"
        stage.s2s.post(path, json={"workflowId": made["id"]}).raise_for_status()
    return made


def head(page: Page, name: str) -> None:
    """Wait for the page of this name."""
    expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()


def shown(desk: Desk, path: str, name: str) -> None:
    """Open a page of the desk by its address and wait for it."""
    desk.open(f"/desk/{path}")
    head(desk.page, name)
    expect(desk.page.locator("[aria-busy=true]")).to_have_count(0)


def edited(desk: Desk, path: str, name: str) -> Page:
    """Sign in and open the editor of a definition, once it is checked."""
    desk.sign_in()
    shown(desk, path, name)
    expect(desk.page.get_by_text("No problems.")).to_be_visible()
    return desk.page


def viewer(desk: Desk, stage: Stage, name: str) -> None:
    """Sign in as a viewer."""
    desk.sign_in(stage.person(name, "viewer"), PASSWORD)


def fits(page: Page) -> None:
    """Assert that the page needs no horizontal scrolling."""
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
