"""Isolation of surveys and workflows between projects, and voice replies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.api.description.browser import CHROMIUM
from tests.support.sockets.model_server import ModelServer, model_server
from tests.web.harness.axe import findings
from tests.web.harness.background import Background
from tests.web.harness.desk import NETWORK, Desk, opened
from tests.web.harness.insights import survey, workflow
from tests.web.harness.stage import Stage, staged

_SPEAKS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
)


@pytest.mark.journey
def test_surveys_and_workflows_of_other_projects_are_hidden(desk: Desk, stage: Stage) -> None:
    places = [
        f"surveys/{survey(stage, 'Of the demo')['id']}",
        f"workflows/{workflow(stage, 'Of the demo')['id']}",
    ]
    (organisation,) = stage.owner.get("/organisations").json()["items"]
    path = f"/organisations/{organisation['id']}/projects"
    stage.owner.post(path, json={"name": "Elsewhere"}).raise_for_status()
    desk.sign_in()
    desk.tolerated.append(NETWORK)
    desk.page.get_by_role("button", name="Project").click()
    desk.page.get_by_role("menuitemradio", name="Elsewhere").click()
    for place in places:
        desk.open(f"/desk/{place}")
        expect(desk.page.get_by_text("Not found")).to_be_visible()
        expect(desk.page.get_by_text("Of the demo")).to_have_count(0)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A speech model on a real socket."""
    with Background() as background:
        yield background.enter(model_server())


@pytest.fixture
def speaking(browser: Browser) -> Iterator[Browser]:
    """A browser with a permitted microphone that beeps."""
    launched = browser.browser_type.launch(executable_path=CHROMIUM, args=_SPEAKS)
    yield launched
    launched.close()


def test_voice_becomes_a_draft_and_is_not_sent(tmp_path: Path, model: ModelServer, speaking: Browser) -> None:
    settings = {"DESKWIRE_MODEL_URL": model.url, "DESKWIRE_MODEL_NAME": "voice-1"}
    with staged(tmp_path, **settings) as stage, opened(speaking, stage) as desk:
        conversation = stage.converse("voice", "Where is my parcel?", name="Vic Voice")
        desk.sign_in()
        desk.converse("Vic Voice")
        desk.box.fill("Hello Vic. ")
        model.answer({"transcript": "sorry tomorrow", "reply": "We are sorry. It arrives tomorrow."})
        desk.page.get_by_role("button", name="Speak a reply").press("Enter")
        assert findings(desk.page) == []
        desk.page.get_by_role("button", name="Record").press("Enter")
        expect(desk.page.get_by_text("Recording")).to_be_visible()
        desk.page.wait_for_timeout(600)
        desk.page.get_by_role("button", name="Stop and use").press("Enter")
        expect(desk.box).to_have_value("Hello Vic. We are sorry. It arrives tomorrow.")
        assert stage.messages(conversation) == ["Where is my parcel?"], "an agent reads it first"
        (asked,) = model.asked
        context, audio = asked["messages"][1]["content"]
        assert "Where is my parcel?" in context["text"]
        assert audio["input_audio"]["format"] == "wav"
        model.answer({"transcript": "word for word"})
        desk.page.get_by_role("button", name="Speak a reply").click()
        desk.page.get_by_role("combobox", name="Use as").select_option("dictate")
        desk.page.get_by_role("button", name="Record").click()
        desk.page.wait_for_timeout(300)
        desk.page.get_by_role("button", name="Stop and use").click()
        expect(desk.box).to_have_value("Hello Vic. We are sorry. It arrives tomorrow.word for word")
        assert len(model.asked[1]["messages"][1]["content"]) == 1, "dictation has no context"


def test_missing_voice_model_is_reported_and_keeps_the_draft(tmp_path: Path, speaking: Browser) -> None:
    with staged(tmp_path) as stage, opened(speaking, stage) as desk:
        stage.converse("mute", "Hello?", name="Max Mute")
        desk.sign_in()
        desk.tolerated.append(NETWORK)
        desk.converse("Max Mute")
        desk.box.fill("Kept.")
        desk.page.get_by_role("button", name="Speak a reply").click()
        desk.page.get_by_role("button", name="Record").click()
        desk.page.wait_for_timeout(300)
        desk.page.get_by_role("button", name="Stop and use").click()
        expect(desk.page.get_by_text("No language model is configured here.").first).to_be_visible()
        expect(desk.box).to_have_value("Kept.")
