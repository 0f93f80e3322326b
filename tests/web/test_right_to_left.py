"""The desk in a language of the tests that is long and written from right to left."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.languages.pseudo import PSEUDO, desk_with_pseudo
from tests.web.harness.axe import findings
from tests.web.harness.desk import Desk
from tests.web.harness.overflow import PAGES, overflow
from tests.web.harness.stage import Stage, staged


def fill(stage: Stage) -> None:
    conversation = stage.converse("ada", "Hallo! Wo ist mein Paket?", name="Ada Lovelace")
    path = f"/conversations/{conversation['id']}"
    stage.owner.post(f"{path}/messages", json={"text": "Ich sehe nach."}).raise_for_status()
    stage.owner.patch(path, json={"tags": ["versand"]}).raise_for_status()
    stage.owner.post("/tickets", json={"title": "Paket suchen", "tags": ["versand"]}).raise_for_status()
    stage.person("Grace", "admin")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("pseudo")
    with staged(folder, DESKWIRE_WEB_DIR=str(desk_with_pseudo(folder))) as stage:
        fill(stage)
        yield stage


@pytest.fixture(params=[1280, 390])
def desk(request: pytest.FixtureRequest, window: Callable[..., Desk], stage: Stage) -> Desk:
    desk = window(stage, viewport={"width": request.param, "height": 860}, reduced_motion="reduce")
    cookie = {"name": "deskwire-language", "value": PSEUDO, "domain": "127.0.0.1", "path": "/desk"}
    desk.context.add_cookies([cookie])
    desk.start_session()
    return desk


def test_long_texts_from_right_to_left_fit_into_the_window(desk: Desk) -> None:
    found = dict[str, list[str]]()
    for path in PAGES:
        desk.open(f"/desk/{desk.stage.demo['projectId']}/{path}")
        expect(desk.page.locator("html")).to_have_attribute("dir", "rtl")
        found[path] = overflow(desk.page)
    assert found == {path: [] for path in PAGES}


@pytest.mark.journey
def test_sides_of_a_thread_are_swapped(desk: Desk) -> None:
    page = desk.page
    desk.open(f"/desk/{desk.stage.demo['projectId']}/inbox/all")
    desk.row("Ada Lovelace").click()
    expect(page.locator(".composer textarea")).to_be_visible()
    thread = page.get_by_role("log").or_(page.locator(".messages")).first.bounding_box()
    theirs = page.locator(".run:not(.out) .message").first.bounding_box()
    ours = page.locator(".run.out .message").first.bounding_box()
    assert thread is not None
    assert theirs is not None
    assert ours is not None
    middle = thread["x"] + thread["width"] / 2
    assert theirs["x"] + theirs["width"] > middle > ours["x"]
    assert theirs["x"] > ours["x"]
    assert overflow(page) == []


def test_axe_finds_nothing_from_right_to_left(desk: Desk) -> None:
    desk.open(f"/desk/{desk.stage.demo['projectId']}/inbox/all")
    expect(desk.row("Ada Lovelace")).to_be_visible()
    assert findings(desk.page) == []
