"""The panel: messages, files, steps and ratings, its keys and sizes, and its accessibility (WCAG 2.2 AA)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK
from tests.web.harness.stage import Stage
from tests.web.harness.widget import HostWindow, conversation_of, make_channel

WINDOWS: Final[Mapping[str, tuple[Mapping[str, Any], str]]] = {
    "wide": ({}, "en"),
    "narrow": ({"viewport": {"width": 320, "height": 568}}, "de"),
    "right to left": ({}, "ar"),
}
STEPS: Final = {
    "name": "Topics",
    "trigger": {"type": "conversation.created"},
    "flows": [
        {
            "id": "main",
            "actions": [
                {
                    "id": 1,
                    "type": "buttons",
                    "text": "What is it about?",
                    "options": [
                        {"id": "order", "label": "My order"},
                        {"id": "other", "label": "Another thing"},
                    ],
                },
                {
                    "id": 2,
                    "type": "form",
                    "text": "Which order?",
                    "fields": [{"id": "number", "type": "text", "label": "Order number", "required": True}],
                },
                {"id": 3, "type": "hand_off"},
            ],
        }
    ],
}
SURVEY: Final[dict[str, Any]] = {
    "name": "After the chat",
    "definition": {
        "schemaVersion": "2.0",
        "title": "After the chat",
        "languages": ["en", "de"],
        "primaryLanguage": "en",
        "questions": [
            {
                "id": "score",
                "type": "nps",
                "required": True,
                "title": {"en": "Would you recommend us?", "de": "Würden Sie uns empfehlen?"},
            },
            {"id": "why", "type": "text", "title": {"en": "What went wrong?", "de": "Was ging schief?"}},
        ],
        "logic": [{"from": "score", "to": "end", "when": {"op": "gte", "value": 9}}],
        "thankYou": {"en": "Thanks a lot!", "de": "Besten Dank!"},
    },
}
PICTURE: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cfc0f01f0005000"
    "1ff56c7d2a00000000049454e44ae426082"
)


def started(window: HostWindow, text: str, query: str = "", **changes: Any) -> dict[str, Any]:
    """Open the panel of a new channel, write the first message, and return the stored conversation."""
    window.open(make_channel(window.stage, **changes), query)
    window.button.click()
    window.say(text)
    expect(window.log().get_by_text("Delivered")).to_be_visible()
    return conversation_of(window.stage, text)


def reply(stage: Stage, conversation: Mapping[str, Any], text: str) -> None:
    """Answer as the demo's owner."""
    stage.owner.post(f"/conversations/{conversation['id']}/messages", json={"text": text}).raise_for_status()


@pytest.mark.journey
def test_message_and_reply_appear_on_both_sides(window: HostWindow) -> None:
    conversation = started(window, "Where is my order?")
    reply(window.stage, conversation, "On its way: https://carrier.example/1Z?a=b. Anything else?")
    link = window.log().get_by_role("link")
    expect(link).to_have_attribute("href", "https://carrier.example/1Z?a=b")
    expect(link).to_have_attribute("target", "_blank")
    expect(link).to_have_attribute("rel", re.compile("noopener"))
    window.say("No, thank you.")
    expect(window.log().get_by_text("No, thank you.")).to_be_visible()
    expect(window.log().get_by_text("Delivered")).to_have_count(1)
    assert window.stage.messages(conversation)[-1] == "No, thank you."


def test_texts_never_become_markup(window: HostWindow) -> None:
    evil = "<img src=x onerror=alert(1)> javascript:alert(1) <b>bold</b>"
    conversation = started(window, "Hello")
    reply(window.stage, conversation, evil)
    expect(window.log().get_by_text(evil)).to_be_visible()
    expect(window.log().locator("img, b, script")).to_have_count(0)


def test_shift_enter_makes_a_line_and_an_empty_message_is_not_sent(window: HostWindow) -> None:
    window.open(make_channel(window.stage))
    window.button.click()
    window.box.fill("   ")
    window.box.press("Enter")
    window.box.fill("one")
    window.box.press("Shift+Enter")
    window.page.keyboard.type("two")
    window.box.press("Enter")
    expect(window.log().locator("article")).to_have_count(1)
    expect(window.log().get_by_text("one\ntwo")).to_be_visible()


def test_list_has_conversations_with_the_unread_first_and_leads_back(window: HostWindow) -> None:
    first = started(window, "The first thing")
    window.panel.get_by_role("button", name="All conversations").click()
    reply(window.stage, first, "An answer")
    row = window.panel.get_by_role("button", name=re.compile("An answer"))
    expect(row).to_contain_text("Unread")
    expect(window.panel.get_by_role("heading", name="Shop support")).to_be_focused()
    window.panel.get_by_role("button", name="New conversation").click()
    window.say("The second thing")
    expect(window.log().get_by_text("Delivered")).to_be_visible()
    window.panel.get_by_role("button", name=re.compile("All conversations")).click()
    expect(window.panel.get_by_role("listitem")).to_have_count(2)
    row.click()
    expect(window.log().get_by_text("An answer")).to_be_visible()
    window.panel.get_by_role("button", name="All conversations", exact=True).click()
    expect(window.panel.get_by_text("Unread")).to_have_count(0)


def test_unread_number_is_on_the_button_of_a_closed_panel_and_of_the_next_page(window: HostWindow) -> None:
    window.site.first = "window.numbers = []; window.Deskwire = []; Deskwire.push(['on', 'unread', each => numbers.push(each)]);"
    conversation = started(window, "Are you there?")
    window.box.press("Escape")
    expect(window.frame).to_be_hidden()
    reply(window.stage, conversation, "Yes")
    expect(window.button).to_have_accessible_name("Shop support (1)")
    assert window.calls("numbers.at(-1)") == 1
    window.page.goto(f"{window.site.url}/next")
    expect(window.button).to_have_accessible_name("Shop support (1)")
    window.button.click()
    window.panel.get_by_role("button", name=re.compile("Yes")).click()
    expect(window.log().get_by_text("Yes")).to_be_visible()
    expect(window.button).to_have_accessible_name("Shop support")


def test_draft_survives_another_page(window: HostWindow) -> None:
    window.open(make_channel(window.stage))
    window.button.click()
    window.box.fill("Half a sent")
    window.page.goto(f"{window.site.url}/next")
    window.button.click()
    expect(window.box).to_have_value("Half a sent")


def test_offline_message_is_kept_and_sent_later(window: HostWindow) -> None:
    window.tolerated.append(NETWORK)
    conversation = started(window, "Before the tunnel")
    window.page.context.set_offline(True)
    expect(window.panel.get_by_text("You are offline.")).to_be_visible()
    window.say("In the tunnel")
    expect(window.log().get_by_text("Kept on this device")).to_be_visible()
    window.page.context.set_offline(False)
    expect(window.log().get_by_text("Delivered")).to_be_visible()
    expect(window.panel.get_by_text("You are offline.")).to_have_count(0)
    assert window.stage.messages(conversation) == ["Before the tunnel", "In the tunnel"]


def test_refused_message_says_why_and_can_be_discarded(window: HostWindow) -> None:
    window.tolerated.append(NETWORK)
    started(window, "Hello")
    window.page.route(
        re.compile("/customer/conversations/.*/messages$"),
        lambda route: (
            route.fulfill(status=422, json={"code": "invalid_input", "detail": "This text is not allowed."})
            if route.request.method == "POST"
            else route.continue_()
        ),
    )
    window.say("Refuse me")
    expect(window.log().get_by_text("Not sent: ")).to_contain_text("This text is not allowed.")
    window.panel.get_by_role("button", name="Discard").click()
    expect(window.log().get_by_text("Refuse me")).to_have_count(0)
    window.say("Refuse me too")
    expect(window.log().get_by_text("Not sent: ")).to_be_visible()
    window.page.unroute_all()
    window.panel.get_by_role("button", name="Try again").click()
    expect(window.log().get_by_text("Not sent: ")).to_have_count(0)
    expect(window.log().get_by_text("Delivered")).to_be_visible()


def test_blocked_customer_reads_why_and_sends_after_the_block(window: HostWindow) -> None:
    window.tolerated.append(NETWORK)
    conversation, stage = started(window, "Hello"), window.stage
    user = conversation["contact"]["userId"]
    stage.s2s.post(f"/s2s/contacts/{user}/block", json={"reason": "Insults"}).raise_for_status()
    window.say("Let me in")
    refused = window.log().get_by_text("Not sent: ")
    expect(refused).to_contain_text("You have been blocked and can't send messages.")
    expect(window.panel.get_by_text("Insults")).to_have_count(0)
    reply(stage, conversation, "This is why")
    expect(window.log().get_by_text("This is why")).to_be_visible()
    stage.s2s.post(f"/s2s/contacts/{user}/unblock").raise_for_status()
    window.panel.get_by_role("button", name="Try again").click()
    expect(refused).to_have_count(0)
    expect(window.log().get_by_text("Delivered")).to_be_visible()
    assert stage.messages(conversation) == ["Hello", "This is why", "Let me in"]


def test_files_are_previewed_removed_and_sent(window: HostWindow) -> None:
    conversation = started(window, "Hello")
    picture = FilePayload(name="shoe.png", mimeType="image/png", buffer=PICTURE)
    note = FilePayload(name="note.txt", mimeType="text/plain", buffer=b"broken")
    window.panel.locator("input[type=file]").set_input_files([picture, note])
    expect(window.panel.get_by_role("img", name="shoe.png")).to_have_attribute("src", re.compile("^blob:"))
    window.panel.get_by_role("button", name=re.compile("Remove .*note.txt")).click()
    window.say("Look")
    expect(window.log().get_by_role("img", name="shoe.png")).to_be_visible()
    path = f"/conversations/{conversation['id']}/messages"
    (*_, last) = window.stage.owner.get(path).json()["items"]
    assert [each["name"] for each in last["attachments"]] == ["shoe.png"]


def test_dropped_and_pasted_files_are_attached(window: HostWindow) -> None:
    window.open(make_channel(window.stage))
    window.button.click()
    give = """(box, kind) => {
      const data = new DataTransfer();
      data.items.add(new File(["text"], `${kind}.txt`, {type: "text/plain"}));
      const event = kind === "drop" ? new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true})
        : new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
      box.dispatchEvent(event);
      return event.defaultPrevented;
    }"""
    assert window.box.evaluate(give, "drop")
    assert window.box.evaluate(give, "paste")
    for name in ("drop.txt", "paste.txt"):
        expect(window.panel.locator(".files").get_by_text(name)).to_be_visible()


def test_file_that_is_too_large_is_refused_with_its_name(window: HostWindow) -> None:
    window.open(make_channel(window.stage))
    window.button.click()
    large = FilePayload(name="film.mp4", mimeType="video/mp4", buffer=b"0" * (10 * 1024 * 1024 + 1))
    window.panel.locator("input[type=file]").set_input_files([large])
    expect(window.panel.get_by_role("alert").filter(has_text="film.mp4")).to_contain_text("larger than 10 MB")


def test_workflow_steps_are_buttons_and_a_form(window: HostWindow) -> None:
    workflow = window.stage.owner.post("/workflows", json={**STEPS, "trigger": {"type": "manual"}})
    started_by = workflow.raise_for_status().json()["id"]
    conversation = started(window, "I have a question", startsWorkflow=started_by)
    window.panel.get_by_role("group", name="What is it about?").get_by_role("button", name="My order").click()
    expect(window.log().get_by_text("My order")).to_be_visible()
    window.panel.get_by_role("form", name="Which order?").get_by_label("Order number").fill("A-1001")
    window.panel.get_by_role("button", name="Submit").click()
    expect(window.panel.get_by_role("form", name="Which order?")).to_have_count(0)
    assert window.stage.messages(conversation)[-1] == "Order number: A-1001"


@pytest.mark.journey
def test_closed_conversation_is_rated_and_surveyed_and_opened_again(window: HostWindow) -> None:
    survey = window.stage.owner.post("/engagement/surveys", json=SURVEY).raise_for_status().json()["id"]
    conversation = started(window, "One more thing", survey=survey)
    path = f"/conversations/{conversation['id']}"
    window.stage.owner.post(f"{path}/close").raise_for_status()
    stars = window.panel.get_by_role("group", name="How did we do?")
    stars.get_by_role("radio", name="1 of 5").focus()
    for _ in range(3):
        window.page.keyboard.press("ArrowRight")
    expect(stars.get_by_role("radio", name="4 of 5")).to_be_checked()
    window.panel.get_by_label("Would you like to add something?").fill("Quick!")
    window.panel.get_by_role("button", name="Submit").click()
    expect(window.panel.get_by_text("Thank you!")).to_be_visible()
    rated = window.stage.owner.get(path).json()
    assert (rated["rating"], rated["ratingComment"]) == (8, "Quick!")
    window.panel.get_by_role("button", name="Answer a few questions").click()
    question = window.panel.get_by_role("form", name="Answer a few questions")
    expect(question.get_by_role("group", name="Would you recommend us?")).to_be_visible()
    question.get_by_role("radio", name="3", exact=True).check()
    question.get_by_role("button", name="Next").click()
    window.panel.get_by_label("What went wrong?").fill("Too slow")
    window.panel.get_by_role("button", name="Submit").click()
    expect(window.panel.get_by_text("Thanks a lot!")).to_be_visible()
    (response,) = window.stage.owner.get(f"/engagement/surveys/{survey}/responses").json()["items"]
    assert response["answers"] == {"score": 3, "why": "Too slow"}
    window.say("And another")
    expect(window.panel.get_by_text("This conversation is closed.")).to_have_count(0)


def test_survey_checks_sizes_and_folds_texts_as_the_service(window: HostWindow) -> None:
    choices = [{"id": each, "label": {"en": each}} for each in ("Slow", "Rude", "Dear")]
    questions = [
        {"id": "what", "type": "multiple_choice", "title": {"en": "What was bad?"}, "choices": choices, "required": True, "max": 2},
        {"id": "skipped", "type": "nps", "title": {"en": "Would you recommend us?"}, "required": True},
        {"id": "where", "type": "text", "title": {"en": "Where was it?"}, "required": True},
        {"id": "more", "type": "text", "title": {"en": "Anything else?"}, "required": True},
    ]  # fmt: skip
    logic = [
        {"from": "what", "to": "where", "when": {"op": "contains", "value": "Rude"}},
        {"from": "where", "to": "end", "when": {"op": "contains", "value": "CAFE STRASSE"}},
    ]
    definition = {**SURVEY["definition"], "questions": questions, "logic": logic, "languages": ["en"], "thankYou": {"en": "Noted!"}}  # fmt: skip
    body = {"name": "Sizes", "definition": definition}
    survey = window.stage.owner.post("/engagement/surveys", json=body).raise_for_status().json()["id"]
    conversation = started(window, "A survey, please", survey=survey)
    window.stage.owner.post(f"/conversations/{conversation['id']}/close").raise_for_status()
    window.panel.get_by_role("button", name="Answer a few questions").click()
    question = window.panel.get_by_role("form", name="Answer a few questions")
    question.get_by_role("button", name="Next").click()
    expect(question.get_by_role("alert")).to_have_text("From 1 to 2")
    for name in ("Slow", "Rude"):
        question.get_by_role("checkbox", name=name).check()
    question.get_by_role("button", name="Next").click()
    window.panel.get_by_label("Where was it?").fill("   ")
    question.get_by_role("button", name="Next").click()
    expect(question.get_by_role("alert")).to_have_text(re.compile("^From 1 to"))
    window.panel.get_by_label("Where was it?").fill("In der Caf\u00e9 Stra\u00dfe")
    question.get_by_role("button", name="Next").click()
    expect(window.panel.get_by_text("Noted!")).to_be_visible()
    (response,) = window.stage.owner.get(f"/engagement/surveys/{survey}/responses").json()["items"]
    assert response["answers"] == {"what": ["Slow", "Rude"], "where": "In der Caf\u00e9 Stra\u00dfe"}


def test_typing_agent_is_named(window: HostWindow) -> None:
    conversation = started(window, "Hello?")
    path = f"/conversations/{conversation['id']}/typing"
    window.stage.owner.post(path, json={"typing": True}).raise_for_status()
    expect(window.panel.get_by_role("status").filter(has_text="is typing")).to_be_visible()
    window.stage.owner.post(path, json={"typing": False}).raise_for_status()
    expect(window.panel.get_by_text("is typing")).to_have_count(0)


@pytest.mark.journey
def test_sign_out_forgets_everything_and_says_how_much_was_given_up(window: HostWindow) -> None:
    started(window, "A secret")
    assert window.calls("Deskwire.signOut()") == {"givenUp": 0}
    expect(window.panel.get_by_text("A secret")).to_have_count(0)
    expect(window.panel.get_by_text("Hello! See")).to_be_visible()
    window.page.reload()
    window.button.click()
    expect(window.panel.get_by_text("Hello! See")).to_be_visible()
    expect(window.panel.get_by_text("A secret")).to_have_count(0)


def test_sign_out_succeeds_on_a_page_that_has_not_opened_the_panel(window: HostWindow) -> None:
    started(window, "A secret")
    window.page.goto(f"{window.site.url}/next")
    assert window.calls("Deskwire.signOut()") == {"givenUp": 0}
    window.button.click()
    expect(window.panel.get_by_text("Hello! See")).to_be_visible()
    expect(window.panel.get_by_text("A secret")).to_have_count(0)


_SMALL: Final = """() => [...document.querySelectorAll("button, input, textarea, label.pick, label.star, a.file")]
  .filter(each => each.checkVisibility() && !each.closest(".hidden") && !each.matches("label input"))
  .map(each => [each.outerHTML.slice(0, 80), each.getBoundingClientRect()])
  .filter(([, {width, height}]) => width < 44 || height < 44)
  .map(([html, {width, height}]) => `${html} ${width}x${height}`)"""


def settled(page: Page) -> None:
    """Wait until all animations have ended."""
    page.evaluate(
        "() => Promise.allSettled(document.getAnimations().map(each => each.finished)).then(() => null)"
    )


@pytest.mark.parametrize("name", WINDOWS)
def test_axe_finds_nothing_and_targets_are_large_enough(visit: Callable[..., HostWindow], name: str) -> None:
    options, language = WINDOWS[name]
    window = visit(reduced_motion="reduce", **options)
    stage, page = window.stage, window.page
    workflow = stage.owner.post("/workflows", json={**STEPS, "trigger": {"type": "manual"}})
    survey = stage.owner.post("/engagement/surveys", json=SURVEY).raise_for_status().json()["id"]
    channel = make_channel(
        stage,
        visitors={"allowed": True, "ask": ["name", "email?"]},
        startsWorkflow=workflow.raise_for_status().json()["id"],
        survey=survey,
        look={"colour": "#ffd400", "position": "right", "texts": {}},
    )
    problems: dict[str, list[str]] = {}

    def look(where: str) -> None:
        settled(page)
        found = findings(page) + page.evaluate(_SMALL)
        if page.evaluate("() => document.documentElement.scrollWidth - innerWidth") > 0:
            found.append("too wide")
        if found:
            problems[where] = found

    page.goto(f"{stage.url}/widget/{channel}?lang={language}")
    box = page.locator("textarea").last
    expect(box).to_be_visible()
    look("new conversation")
    page.locator("input[name=name]").fill("Ada")
    text = (
        f"Accessible {name} https://shop.example/a/very/long/address/that/does/not/fit/into/a/narrow/window"
    )
    box.fill(text)
    box.press("Enter")
    expect(page.locator(".options button").first).to_be_visible()
    look("thread with buttons")
    page.locator(".options button").first.click()
    expect(page.locator(".step form")).to_be_visible()
    look("thread with a form")
    conversation = conversation_of(stage, text)
    stage.owner.post(f"/conversations/{conversation['id']}/close").raise_for_status()
    expect(page.locator(".star").first).to_be_visible()
    page.locator(".star").nth(3).click()
    expect(page.locator(".rating form")).to_be_visible()
    page.locator(".rating > button").click()
    expect(page.locator(".scale label").first).to_be_visible()
    look("closed conversation with rating and survey")
    page.locator("header button").first.click()
    expect(page.get_by_role("listitem")).to_have_count(1)
    look("list")
    assert problems == {}
