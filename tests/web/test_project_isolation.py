"""Isolation between projects: an address of another project shows no data."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.hostile import FIRED, MARKUP
from tests.web.harness.stage import Stage


@pytest.mark.journey
def test_address_of_another_project_shows_no_data(desk: Desk, stage: Stage) -> None:
    (organisation,) = stage.owner.get("/organisations").raise_for_status().json()["items"]
    made = stage.owner.post(f"/organisations/{organisation['id']}/projects", json={"name": "Elsewhere"})
    other = {"project": made.raise_for_status().json()["id"]}
    ticket = stage.owner.post("/tickets", json={"title": "Their ticket"}, headers=other).raise_for_status()
    body = {"contact": {"userId": "u1", "name": "Their contact"}, "title": "Theirs"}
    conversation = stage.owner.post("/conversations", json=body, headers=other).raise_for_status().json()
    desk.sign_in()
    desk.page.get_by_role("button", name="Elsewhere").click()
    desk.page.get_by_role("menuitemradio", name="Demo project").click()
    expect(desk.page.get_by_role("button", name="Demo project")).to_be_visible()
    desk.tolerated.append(NETWORK)
    for place in (f"tickets/{ticket.json()['id']}", f"contacts/{conversation['contact']['id']}"):
        desk.open(f"/desk/{place}")
        expect(desk.page.get_by_text("Not found")).to_be_visible()
        expect(desk.page.get_by_text("Their ")).to_have_count(0)


def test_user_input_never_becomes_markup_on_pages(desk: Desk, stage: Stage) -> None:
    conversation = stage.converse("hostile", MARKUP[0], name=MARKUP[1])
    contact = conversation["contact"]["id"]
    body = {"attributes": {"plan": MARKUP[0], MARKUP[3]: MARKUP[2]}, "tags": ["<b>tag</b>"]}
    stage.owner.patch(f"/contacts/{contact}", json=body).raise_for_status()
    ticket = {"title": MARKUP[2], "description": MARKUP[5], "type": "<i>type</i>", "contactId": contact}
    made = stage.owner.post("/tickets", json=ticket).raise_for_status().json()
    change = {"title": MARKUP[4]}
    stage.owner.patch(f"/tickets/{made['id']}", json=change).raise_for_status()
    stage.owner.post("/teams", json={"name": MARKUP[1]}).raise_for_status()
    snippet = {"shortcut": "markup", "title": MARKUP[4], "text": MARKUP[1]}
    stage.owner.post("/snippets", json=snippet).raise_for_status()
    key = {"label": MARKUP[3]}
    stage.owner.post(f"/projects/{stage.demo['projectId']}/keys", json=key).raise_for_status()
    places = {
        "tickets": MARKUP[4],
        f"tickets/{made['id']}": MARKUP[2],
        "contacts": MARKUP[1],
        f"contacts/{contact}": MARKUP[1],
        "settings/teams": MARKUP[1],
        "settings/snippets": MARKUP[4],
        "settings/keys": MARKUP[3],
        "settings/audit": MARKUP[3],
    }
    desk.sign_in()
    for place, text in places.items():
        desk.open(f"/desk/{place}")
        expect(desk.page.locator(".page")).to_contain_text(text)
        assert desk.page.locator(".page img, .page iframe, .page script, .page svg[onload]").count() == 0
    assert desk.page.evaluate(f"window.{FIRED} ?? null") is None
