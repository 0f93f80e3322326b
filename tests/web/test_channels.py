"""The page of channels: create, change, secrets, keys, texts, preview, code for the website, check and deletion."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from playwright.sync_api import FrameLocator, Locator, expect

from tests.web.harness.axe import findings
from tests.web.harness.customer import Customer, channel_of
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.insights import survey, workflow
from tests.web.harness.keyboard import Keys
from tests.web.harness.stage import PASSWORD, Stage
from tests.web.harness.website import website

WINDOWS: Final[Mapping[str, Mapping[str, Any]]] = {
    "wide": {},
    "narrow": {"viewport": {"width": 320, "height": 800}},
}


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests; each has its own channel."""
    return shared_stage


def _opened(desk: Desk, place: str, heading: str) -> None:
    desk.sign_in()
    desk.open(f"/desk/{place}")
    expect(desk.page.get_by_role("heading", level=1, name=heading)).to_be_visible()


def _shown(desk: Desk, channel: dict[str, Any]) -> None:
    _opened(desk, f"settings/channels/{channel['id']}", channel["name"])


def _stored(stage: Stage, channel: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = stage.owner.get(f"/channels/{channel['id']}").raise_for_status().json()
    return found


def _preview(desk: Desk) -> FrameLocator:
    return desk.page.frame_locator(".preview iframe")


def _left(button: Locator) -> float:
    box = button.bounding_box()
    assert box is not None
    return float(box["x"])


@pytest.mark.journey
def test_channel_is_created_and_its_secret_shown_once(desk: Desk, stage: Stage) -> None:
    _opened(desk, "settings/channels", "Channels")
    page = desk.page
    page.get_by_role("button", name="New channel").first.click()
    page.get_by_label("Name").fill("Brand new")
    page.get_by_label("Websites that may show the chat").fill("shop.example\n\n*.shop.example\nlocalhost")
    page.get_by_role("button", name="Create").click()
    dialog = page.get_by_role("dialog", name="The secret of Brand new")
    secret = dialog.locator("pre").inner_text()
    assert re.fullmatch(r"chs_[\w-]{20,}", secret)
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_role("heading", level=1, name="Brand new")).to_be_visible()
    (channel,) = (
        each for each in stage.owner.get("/channels").json()["items"] if each["name"] == "Brand new"
    )
    assert channel["origins"] == ["https://shop.example", "https://*.shop.example", "http://localhost"]
    assert Customer(stage, {**channel, "identity": {"secret": secret}}, sub="ada").status() == 200
    expect(page.locator(".page-body")).not_to_contain_text(secret)


def test_every_part_is_saved_alone(desk: Desk, stage: Stage) -> None:
    channel = channel_of(stage, "In parts")
    _shown(desk, channel)
    page = desk.page
    page.get_by_label("Phone").select_option("required")
    page.get_by_label("Position of the button").select_option("left")
    page.get_by_role("button", name="Save look").click()
    expect(page.get_by_text("Channel saved.").last).to_be_visible()
    expect(page.get_by_label("Phone")).to_have_value("required")
    page.get_by_label("Email", exact=True).select_option("optional")
    page.get_by_role("button", name="Save visitors").click()
    page.get_by_label("Customers", exact=True).select_option("required")
    page.get_by_role("button", name="Save sign-in").click()
    desk.eventually(lambda: _stored(stage, channel)["identity"]["mode"], "required")
    found = _stored(stage, channel)
    assert found["look"]["position"] == "left"
    assert found["visitors"]["ask"] == ["email?", "phone"]
    assert found["origins"] == channel["origins"]


def test_problems_are_shown_at_their_fields(desk: Desk, stage: Stage) -> None:
    channel = channel_of(stage, "Refused")
    desk.tolerated.append(NETWORK)
    _shown(desk, channel)
    field = desk.page.get_by_label("Websites that may show the chat")
    field.fill("shop.example\nhttps://shop.example/path\n")
    desk.page.get_by_role("button", name="Save websites").click()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_be_focused()
    expect(desk.page.locator(".form .wrong")).to_contain_text("Line 2:")
    desk.page.get_by_role("button", name="Add a public key").click()
    dialog = desk.page.get_by_role("dialog", name="Add a public key")
    dialog.get_by_label("Key ID").fill("k1")
    dialog.get_by_label("Public key (PEM)").fill("no key")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.get_by_label("Public key (PEM)")).to_have_attribute("aria-invalid", "true")
    assert _stored(stage, channel)["identity"]["publicKeys"] == []


def test_public_keys_are_added_and_removed(desk: Desk, stage: Stage) -> None:
    channel = channel_of(stage, "With keys")
    _shown(desk, channel)
    page = desk.page
    for name in ("old", "new"):
        public = generate_private_key(SECP256R1()).public_key()
        pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
        page.get_by_role("button", name="Add a public key").click()
        dialog = page.get_by_role("dialog", name="Add a public key")
        dialog.get_by_label("Key ID").fill(name)
        dialog.get_by_label("Public key (PEM)").fill(pem)
        dialog.get_by_role("button", name="Add").click()
        expect(dialog).to_have_count(0)
    page.get_by_role("button", name="Remove the key old").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Tokens signed with this key are refused")
    dialog.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("row").filter(has_text="old")).to_have_count(0)
    assert [each["id"] for each in _stored(stage, channel)["identity"]["publicKeys"]] == ["new"]


def test_rotated_secret_is_shown_once_and_the_previous_one_counts(desk: Desk, stage: Stage) -> None:
    channel = channel_of(stage, "Rotated")
    _shown(desk, channel)
    page = desk.page
    page.get_by_role("button", name="Rotate secret").click()
    page.get_by_role("dialog").get_by_role("button", name="Create a new secret").click()
    dialog = page.get_by_role("dialog", name="The secret of Rotated")
    secret = dialog.locator("pre").inner_text()
    assert secret != channel["identity"]["secret"]
    page.keyboard.press("Escape")
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_text("counts until")).to_be_visible()
    for each in (secret, channel["identity"]["secret"]):
        assert Customer(stage, {**channel, "identity": {"secret": each}}, sub="ada").status() == 200


def test_texts_are_written_by_language(desk: Desk, stage: Stage) -> None:
    channel = channel_of(stage, "In languages")
    _shown(desk, channel)
    page = desk.page
    page.get_by_role("button", name="Add a language").click()
    dialog = page.get_by_role("dialog", name="Add a language")
    dialog.get_by_label("Language code").fill("de")
    dialog.get_by_label("Title").fill("Hallo!")
    dialog.get_by_label("Greeting").fill("Wie können wir helfen?")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("row").filter(has_text="German")).to_contain_text("Hallo!")
    assert _stored(stage, channel)["look"]["texts"]["de"] == {
        "title": "Hallo!",
        "greeting": "Wie können wir helfen?",
    }
    page.get_by_role("button", name="Actions for German").click()
    page.get_by_role("menuitem", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("row").filter(has_text="German")).to_have_count(0)
    assert _stored(stage, channel)["look"]["texts"] == {}


def test_workflow_and_survey_are_chosen_by_name(desk: Desk, stage: Stage) -> None:
    channel = channel_of(stage, "Automated")
    chosen = (workflow(stage, "Greeter")["id"], survey(stage, "How was it?")["id"])
    _shown(desk, channel)
    desk.page.get_by_label("Workflow").select_option(label="Greeter")
    desk.page.get_by_label("Survey").select_option(label="How was it?")
    desk.page.get_by_role("button", name="Save conversations").click()
    expect(desk.page.get_by_text("Channel saved.").last).to_be_visible()
    found = _stored(stage, channel)
    assert (found["startsWorkflow"], found["survey"]) == chosen


def test_copied_lines_load_the_widget(desk: Desk, stage: Stage) -> None:
    channel = channel_of(stage, "Copied", identity={"mode": "none"})
    _shown(desk, channel)
    desk.context.grant_permissions(["clipboard-read", "clipboard-write"])
    desk.page.get_by_role("button", name="Copy").first.click()
    expect(desk.page.get_by_text("Copied").last).to_be_visible()
    lines = desk.page.evaluate("navigator.clipboard.readText()")
    assert len(lines.splitlines()) == 2
    (source,) = re.findall(r'src="([^"]+)"', lines)
    answer = stage.s2s.get(source)
    assert answer.status_code == 200
    assert "javascript" in answer.headers["content-type"]


def test_preview_shows_the_widget_and_unsaved_changes(desk: Desk, stage: Stage) -> None:
    channel = channel_of(stage, "Previewed")
    _shown(desk, channel)
    button = _preview(desk).locator("deskwire-widget button").first
    expect(button).to_be_visible()
    before = _left(button)
    desk.page.get_by_label("Position of the button").select_option("left")
    expect(button).to_be_visible()
    desk.eventually(lambda: _left(button) < before, True)
    assert _stored(stage, channel)["look"]["position"] == "right"


def test_website_is_checked(desk: Desk, stage: Stage) -> None:
    with website() as site:
        channel = channel_of(stage, "Checked", origins=[])
        loader = f"{stage.server.url}/widget/{channel['id']}.js"
        _shown(desk, channel)
        page = desk.page
        address = page.get_by_label("Address of a page with the chat")
        address.fill(site.url)
        check = page.get_by_role("button", name="Check", exact=True)
        check.click()
        expect(page.locator(".findings")).to_contain_text(loader.rpartition("/")[2])
        expect(page.locator(".findings")).to_contain_text(f"Add {site.url.rstrip('/')}")
        expect(page.get_by_text("The chat does not work here yet")).to_be_visible()
        page.get_by_label("Websites that may show the chat").fill(site.url.rstrip("/"))
        page.get_by_role("button", name="Save websites").click()
        expect(page.get_by_text("Channel saved.").last).to_be_visible()
        site.content = f'<title>Shop</title><script async src="{loader}"></script>'
        check.click()
        expect(page.get_by_text("The chat does not work here yet")).to_have_count(0)
        expect(page.locator(".page-body .lead").first).to_be_visible()


def test_refused_address_of_a_website_is_shown_at_its_field(desk: Desk, stage: Stage) -> None:
    desk.tolerated.append(NETWORK)
    _shown(desk, channel_of(stage, "Unchecked"))
    address = desk.page.get_by_label("Address of a page with the chat")
    address.fill("ftp://shop.example/")
    desk.page.get_by_role("button", name="Check", exact=True).click()
    expect(address).to_have_attribute("aria-invalid", "true")


def test_channel_is_deleted_after_its_name_is_typed(desk: Desk, stage: Stage) -> None:
    channel = channel_of(stage, "Over")
    customer = Customer(stage, channel, sub="over")
    customer.start("Soon over")
    _shown(desk, channel)
    desk.page.get_by_role("button", name="Delete").click()
    dialog = desk.page.get_by_role("dialog", name="Delete this channel")
    expect(dialog).to_contain_text("Its conversations and contacts")
    dialog.get_by_role("textbox").fill("Over")
    dialog.get_by_role("button", name="Delete").click()
    expect(desk.page.get_by_role("heading", level=1, name="Channels")).to_be_visible()
    assert stage.owner.get(f"/channels/{channel['id']}").status_code == 404
    assert customer.status() == 401


def test_keyboard_creates_and_disables_a_channel(desk: Desk, stage: Stage) -> None:
    channel_of(stage, "So that the list is not empty")
    desk.sign_in()
    keys = Keys(desk.page)
    page = desk.page
    keys.press("Control+k")
    expect(page.get_by_role("combobox", name="Type a command or a name")).to_be_focused()
    keys.type("channels")
    keys.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Channels")).to_be_focused()
    keys.to(page.get_by_role("button", name="New channel"))
    keys.press("Enter")
    keys.stands_at(page.get_by_role("dialog").get_by_label("Name"))
    keys.type("By keys")
    keys.press("Enter")
    secret = page.get_by_role("dialog", name="The secret of By keys")
    keys.to(secret.get_by_role("button", name="Close"))
    keys.press("Enter")
    expect(page.get_by_role("heading", level=1, name="By keys")).to_be_visible()
    expect(page.get_by_text("No website may show this chat yet")).to_be_visible()
    keys.to(page.get_by_role("checkbox", name="Enabled"))
    keys.press("Space")
    save = page.get_by_role("button", name="Save websites")
    keys.to(save)
    keys.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("disabled")
    keys.stands_at(save)


def test_agent_without_permission_sees_no_channels(window: Callable[..., Desk], stage: Stage) -> None:
    desk = window(stage)
    desk.sign_in(stage.person("Agathe", "agent"), PASSWORD)
    expect(desk.page.get_by_role("link", name="Channels")).to_have_count(0)
    desk.open("/desk/settings/channels")
    expect(desk.page.get_by_text("Your role can't open this page")).to_be_visible()


@pytest.mark.parametrize("kind", WINDOWS)
def test_axe_finds_nothing_on_a_channel(window: Callable[..., Desk], stage: Stage, kind: str) -> None:
    channel = channel_of(
        stage, f"Axe {kind}", look={"texts": {"de": {"title": "Hallo", "greeting": "Guten Tag!"}}}
    )
    desk = window(stage, reduced_motion="reduce", **WINDOWS[kind])
    problems: dict[str, Any] = {}

    def look(where: str) -> None:
        if found := findings(desk.page):
            problems[where] = found
        if desk.page.evaluate("document.documentElement.scrollWidth - innerWidth") > 0:
            problems[f"{where}, sideways"] = desk.page.evaluate("document.documentElement.scrollWidth")

    _opened(desk, "settings/channels", "Channels")
    expect(desk.page.get_by_role("link", name=f"Axe {kind}")).to_be_visible()
    look("list")
    desk.open(f"/desk/settings/channels/{channel['id']}")
    expect(desk.page.get_by_role("heading", level=1, name=f"Axe {kind}")).to_be_visible()
    expect(desk.page.get_by_label("Survey")).to_be_enabled()
    look("channel")
    for name in ("Add a public key", "Add a language", "Rotate secret", "Delete"):
        desk.page.get_by_role("button", name=name).click()
        expect(desk.page.get_by_role("dialog")).to_be_visible()
        look(name)
        desk.page.keyboard.press("Escape")
    assert problems == {}
