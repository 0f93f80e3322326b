"""The pictures in the README and the guides.

`make web-all ARGS="-k pictures" PICTURES=renew` takes them again. Otherwise each test opens the pictured state, and asserts that the document
contains the picture.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.support.root import ROOT
from tests.web.harness.desk import Desk
from tests.web.harness.insights import DEFINITION, survey, workflow
from tests.web.harness.stage import Stage, staged

SIZE: Final = {"width": 1440, "height": 900}
PEOPLE: Final = (
    ("Mónica Núñez", "¿Dónde está mi pedido?"),
    ("Barbara Liskov", "Can I have another one in its place?"),
    ("Alan Turing", "The machine does not halt. Who can help?"),
    ("Grace Hopper", "Your invoice has my old address."),
    ("Ada Lovelace", "Where is my order? It should have been here on Friday."),
)
ANSWERS: Final = (
    *({"score": 10, "why": "The delivery was fast.", "plan": "pro"} for _ in range(9)),
    *({"score": 9, "why": "Friendly agents, and quick answers.", "plan": "pro"} for _ in range(5)),
    *({"score": 7, "plan": "free"} for _ in range(4)),
    *({"score": 3, "why": "The delivery was late.", "plan": "free"} for _ in range(4)),
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> object:
    """A service with a small shop's conversations and a failing receiver."""
    with staged(tmp_path_factory.mktemp("pictures"), DESKWIRE_WEBHOOK_RETRY_AFTER_S="0.1,0.1,0.1") as stage:
        stage.endpoint("crm")
        stage.endpoint("search", 503)
        for number, (name, text) in enumerate(PEOPLE):
            made = stage.converse(
                f"u{number}", text, name=name, email=f"{name.split()[0].lower()}@example.org"
            )
            path = f"/conversations/{made['id']}"
            stage.owner.patch(path, json={"tags": ["returns", "vip"][number % 2 :]}).raise_for_status()
            note = {"text": "The carrier was asked: it comes tomorrow.", "internal": True}
            stage.owner.post(f"{path}/messages", json=note).raise_for_status()
            stage.owner.post(f"{path}/messages", json={"text": "It left us today."}).raise_for_status()
        stage.say(made, "Thank you! I will wait for it.")
        for title, priority in (
            ("Parcel lost", "HIGH"),
            ("Refund of A-1001", "LOW"),
            ("Broken cup", "MEDIUM"),
        ):
            ticket = {
                "title": title,
                "priority": priority,
                "tags": ["returns"],
                "description": "See the chat.",
            }
            stage.owner.post("/tickets", json=ticket).raise_for_status()
        yield stage


def _inbox(desk: Desk, stage: Stage) -> None:
    desk.view()
    desk.row("Ada Lovelace").click()
    expect(desk.said("I will wait for it.")).to_be_visible()
    expect(desk.log.get_by_role("button", name=re.compile("search ✗")).first).to_be_visible()


def _webhook(desk: Desk, stage: Stage) -> None:
    items = stage.owner.get("/webhooks").raise_for_status().json()["items"]
    failing = next(each["id"] for each in items if each["description"] == "search")
    path = f"/webhooks/{failing}/deliveries"
    desk.eventually(
        lambda: {each["status"] for each in stage.owner.get(path).raise_for_status().json()["items"]},
        {"dropped"},
    )
    desk.open(f"/desk/webhooks/{failing}")
    expect(desk.page.get_by_role("row").filter(has_text="dropped").first).to_be_visible()
    expect(desk.page.locator("figure.chart .drawing").first).to_be_visible()


def _history(desk: Desk, stage: Stage) -> None:
    (newest,) = stage.owner.get("/conversations", params={"limit": "1"}).raise_for_status().json()["items"]
    desk.open(f"/desk/history/{newest['id']}?at=2")
    expect(desk.page.get_by_text("Where is my order?").first).to_be_visible()


def _tickets(desk: Desk, stage: Stage) -> None:
    desk.open("/desk/tickets")
    expect(desk.page.get_by_role("row").filter(has_text="Parcel lost")).to_be_visible()


def _survey(desk: Desk, stage: Stage) -> None:
    made = survey(stage, "After the chat", *ANSWERS)
    desk.open(f"/desk/surveys/{made['id']}")
    expect(desk.page.get_by_role("img", name="The score over time")).to_be_visible()
    desk.page.get_by_role("button", name="Refresh").click()
    expect(desk.page.get_by_text(re.compile("^22 responses")).first).to_be_visible()


def _workflow(desk: Desk, stage: Stage) -> None:
    waiting = [stage.converse(f"w{number}") for number in range(2)]
    made = workflow(stage, "What is it about", waiting)
    desk.open(f"/desk/workflows/{made['id']}")
    expect(desk.page.get_by_text(re.compile("2 waiting, since"))).to_be_visible()


def _definition(desk: Desk, path: str) -> None:
    """Open the editor of a definition, and wait until the definition is checked."""
    desk.open(f"/desk/{path}?part=definition")
    expect(desk.page.get_by_text("No problems.")).to_be_visible()


def _survey_form(desk: Desk, stage: Stage) -> None:
    jump = {"from": "score", "to": "plan", "when": {"op": "gte", "value": 9}}
    body = {"name": "After the chat", "definition": {**DEFINITION, "logic": [jump]}}
    made = stage.owner.post("/engagement/surveys", json=body).raise_for_status().json()
    _definition(desk, f"surveys/{made['id']}")
    expect(desk.page.get_by_role("group", name="Question 1", exact=True)).to_be_visible()


def _workflow_diagram(desk: Desk, stage: Stage) -> None:
    made = workflow(stage, "What is it about")
    _definition(desk, f"workflows/{made['id']}")
    desk.page.locator('[data-place="0 1"]').click()
    form = desk.page.get_by_role("region", name="Selected part")
    expect(form.get_by_role("button", name="Add a button")).to_be_visible()
    expect(desk.page.get_by_text("No problems.")).to_be_visible()


SHOWN: Final[Mapping[str, tuple[str, Callable[[Desk, Stage], None]]]] = {
    "docs/desk.png": ("README.md", _inbox),
    "docs/pictures/webhook.png": ("docs/guide/desk-developers.md", _webhook),
    "docs/pictures/history.png": ("docs/guide/desk-developers.md", _history),
    "docs/pictures/tickets.png": ("docs/guide/desk-admin.md", _tickets),
    "docs/pictures/survey.png": ("docs/guide/desk-insights.md", _survey),
    "docs/pictures/workflow.png": ("docs/guide/desk-insights.md", _workflow),
    "docs/pictures/survey-form.png": ("docs/guide/surveys.md", _survey_form),
    "docs/pictures/workflow-diagram.png": ("docs/guide/workflows.md", _workflow_diagram),
}


@pytest.mark.parametrize("picture", SHOWN)
def test_guide_pictures_are_current(
    window: Callable[..., Desk], stage: Stage, tmp_path: Path, picture: str
) -> None:
    document, reach = SHOWN[picture]
    options: dict[str, Any] = {"viewport": SIZE, "reduced_motion": "reduce"}
    desk = window(stage, **options)
    desk.sign_in()
    reach(desk, stage)
    desk.page.mouse.move(0, 0)
    taken = tmp_path / "taken.png"
    desk.page.screenshot(path=taken, caret="hide", animations="disabled")
    kept = ROOT / picture
    if os.environ.get("PICTURES") == "renew":
        with Image.open(taken) as image:
            image.convert("P", palette=Image.Palette.ADAPTIVE, colors=128).save(kept, optimize=True)
    with Image.open(kept) as before, Image.open(taken) as now:
        assert before.size == now.size
    links = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (ROOT / document).read_text())
    assert kept.resolve() in {((ROOT / document).parent / link).resolve() for link in links}
