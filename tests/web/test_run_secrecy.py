"""What belongs to another project is not there, whatever address somebody opens."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import Stage


def test_an_address_of_another_project_shows_nothing_of_it(desk: Desk, stage: Stage) -> None:
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
        expect(desk.page.get_by_text("There is nothing here")).to_be_visible()
        expect(desk.page.get_by_text("Their ")).to_have_count(0)
