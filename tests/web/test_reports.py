"""Reports in the browser: series, gaps, small numbers, and the period before."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.support.api.import_lines import NDJSON, ndjson
from tests.web.harness.axe import findings
from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.insights import fits, shown
from tests.web.harness.stage import Stage


@pytest.fixture(scope="module")
def stage(shared_stage: Stage) -> Stage:
    """A service shared by these tests, each of which has a tag of its own."""
    return shared_stage


def week(tag: str) -> str:
    """Return the address of a report on the conversations with this tag."""
    return f"reports?days=7&tag={tag}"


NONE = "\u2013"


def answered(stage: Stage, tag: str, days_ago: Sequence[int], waited_s: int = 300) -> None:
    """Import a conversation with this tag for each of these days; its first answer came after `waited_s`."""
    records: list[dict[str, Any]] = []
    now = datetime.now(UTC)
    agent = {"type": "agent", "id": stage.owner.get("/users/me").raise_for_status().json()["id"]}
    for number, days in enumerate(days_ago):
        key, end = f"{tag}-{days}-{number}", now - timedelta(days=days, seconds=1)
        asked = (end - timedelta(seconds=waited_s)).isoformat().replace("+00:00", "Z")
        common = {"externalId": key, "createdAt": asked}
        records += [
            {"type": "conversation", **common, "contact": {"userId": f"u-{key}"}},
            message(key, "a", asked, {"type": "contact"}),
            message(key, "b", end.isoformat().replace("+00:00", "Z"), agent),
        ]
    report = stage.s2s.post("/s2s/import", content=ndjson(records), headers=NDJSON).raise_for_status()
    assert (report.json()["refused"], report.json()["doubtful"]) == (0, 0), report.text
    for key in {each["externalId"] for each in records if each["type"] == "conversation"}:
        found = (
            stage.s2s.get("/s2s/import/conversation", params={"externalId": key}).raise_for_status().json()
        )
        stage.owner.patch(f"/conversations/{found['id']}", json={"tags": [tag]}).raise_for_status()


def message(key: str, part: str, at: str, author: dict[str, Any]) -> dict[str, Any]:
    names = {"externalId": f"{key}-{part}", "conversation": key}
    return {"type": "message", **names, "author": author, "text": "Text", "createdAt": at}


def report(desk: Desk, path: str, name: str = "First response") -> Page:
    """Open a report as the owner, and wait for its chart or table."""
    desk.sign_in()
    shown(desk, path, name)
    expect(desk.page.locator(".plot svg.drawing, .part table").first).to_be_visible()
    expect(desk.page.locator(".awaited")).to_have_count(0)
    return desk.page


def drawn(page: Page) -> list[dict[str, Any]]:
    """Return each line of the chart: its path and markers as lists of points, its pattern and colour."""
    found: list[dict[str, Any]] = page.evaluate(
        """() => [...document.querySelectorAll(".drawing g.series")].map(each => {
          const [line, marker] = each.querySelectorAll("path");
          const points = text => text.split("M").slice(1).map(part => part.split("L").map(point => point.split(" ").map(Number)));
          return { parts: points(line.getAttribute("d")), markers: marker.getAttribute("d").split("M").length - 1,
            dash: line.getAttribute("stroke-dasharray"), look: marker.className.baseVal, colour: getComputedStyle(line).stroke };
        })"""
    )
    return found


@pytest.mark.journey
def test_equal_series_are_drawn_beside_each_other_with_their_own_patterns(desk: Desk, stage: Stage) -> None:
    """With one answer a day the median is the 90th percentile."""
    answered(stage, "equal", [0, 1, 2, 3])
    page = report(desk, f"{week('equal')}&compare=off")
    median, p90 = drawn(page)
    (first,), (second,) = median["parts"], p90["parts"]
    assert len(first) == len(second) == 4
    assert all(
        abs(one[0] - other[0]) < 0.2 and other[1] - one[1] >= 4.9
        for one, other in zip(first, second, strict=True)
    ), (first, second)
    assert findings(page) == []
    assert median["colour"] != p90["colour"]
    page.emulate_media(color_scheme="dark")
    dark = drawn(page)
    assert dark[0]["colour"] != dark[1]["colour"]
    page.emulate_media(color_scheme="light", forced_colors="active")
    for median, p90 in (drawn(page), dark):
        assert median["dash"] != p90["dash"]
        assert median["look"] != p90["look"]


def test_days_without_figures_are_gaps_and_counts_of_nothing_are_zero(desk: Desk, stage: Stage) -> None:
    answered(stage, "gap", [5, 4, 2, 0])
    page = report(desk, f"{week('gap')}&compare=off")
    for line in drawn(page):
        assert [len(part) for part in line["parts"]] == [2], line
        assert line["markers"] == 4
    page.get_by_role("button", name="As a table").click()
    cells = page.get_by_role("table", name="First response").locator("tbody tr td:nth-child(2)")
    assert cells.all_inner_texts() == [NONE, "5", "5", NONE, "5", NONE, "5"]
    page.get_by_role("link", name="Volume").click()
    expect(page.locator(".plot svg.drawing")).to_be_visible()
    created, closed = drawn(page)
    assert [len(part) for part in created["parts"]] == [len(part) for part in closed["parts"]] == [7]
    assert created["markers"] == closed["markers"] == 7


def test_keyboard_and_pointer_read_the_points_of_a_chart(desk: Desk, stage: Stage) -> None:
    answered(stage, "points", [2, 0, 0])
    page = report(desk, f"{week('points')}&compare=off")
    points = page.get_by_role("slider", name="Figures of First response")
    points.focus()
    tip = page.locator(".plot .tip")
    expect(tip).to_contain_text("2 first replies: too few to compare")
    expect(points).to_have_attribute(
        "aria-valuetext", re.compile("Median 5 minutes.*90th percentile 5 minutes")
    )
    points.press("ArrowLeft")
    expect(tip).to_contain_text("No first replies")
    expect(points).to_have_attribute("aria-valuetext", re.compile(f"Median {NONE}"))
    points.press("ArrowLeft")
    expect(tip).to_contain_text("1 first reply: too few to compare")
    points.press("Escape")
    expect(tip).to_have_count(0)
    expect(points).to_be_focused()
    points.press("Home")
    expect(tip).to_be_visible()
    points.blur()
    expect(tip).to_have_count(0)
    box = page.locator(".plot").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 14, box["y"] + 60)
    expect(tip).to_contain_text("2 first replies")
    page.mouse.move(box["x"] + 60, box["y"] - 60)
    expect(tip).to_have_count(0)


def test_report_says_what_changed_since_the_period_before(desk: Desk, stage: Stage) -> None:
    answered(stage, "before", [0, 1, 2, 3] * 4, waited_s=240)
    answered(stage, "before", [7, 8, 9] * 4, waited_s=120)
    answered(stage, "before", [14, 15], waited_s=999)
    page = report(desk, week("before"))
    facts = page.locator(".facts")
    expect(facts.locator("div").filter(has_text="Median")).to_contain_text("Up 2 min from 2 min (+100%)")
    expect(facts.locator("div").filter(has_text="Count")).to_contain_text("Up 4 from 12 (+33%)")
    expect(page.get_by_text(re.compile("^Compared with .*, the same weekdays"))).to_be_visible()
    *_, before = page.locator(".legend > span").all_inner_texts()
    assert before.strip() == "Median before, minutes"
    lines = drawn(page)
    assert len({each["dash"] for each in lines}) == len(lines) == 3
    page.get_by_role("combobox", name="Compare").select_option("Off")
    expect(page).to_have_url(re.compile("compare=off"))
    expect(page.get_by_text("Up 2 min")).to_have_count(0)
    assert len(drawn(page)) == 2
    page.get_by_role("combobox", name="By").select_option("Agent")
    page.get_by_role("combobox", name="Compare").select_option("With the period before")
    row = page.get_by_role("row").filter(has_text="Demo owner")
    expect(row).to_contain_text("Up 2 min from 2 min (+100%)")


def test_small_numbers_are_warned_of_and_have_no_percentage(desk: Desk, stage: Stage) -> None:
    answered(stage, "few", [0, 1, 2], waited_s=240)
    answered(stage, "few", [7], waited_s=120)
    page = report(desk, week("few"))
    expect(page.locator("p.few")).to_have_text("3 first replies: too few to compare")
    median = page.locator(".facts div").filter(has_text="Median")
    expect(median).to_contain_text("Up 2 min from 2 min, with only 1 first reply then")
    expect(median).not_to_contain_text("(")
    page.get_by_role("combobox", name="By").select_option("Agent")
    expect(page.get_by_role("row").filter(has_text="Demo owner")).to_contain_text("too few to compare")


def test_back_returns_to_the_report_shown_before(desk: Desk, stage: Stage) -> None:
    answered(stage, "back", [0, 3])
    page = report(desk, "reports?tag=back")
    page.get_by_role("combobox", name="Period").select_option("7 days")
    page.get_by_role("combobox", name="By").select_option("Agent")
    page.get_by_role("combobox", name="Compare").select_option("Off")
    expect(page).to_have_url(re.compile(r"tag=back&days=7&by=agent&compare=off$"))
    page.go_back()
    expect(page.get_by_role("combobox", name="Compare")).to_have_value("before")
    page.go_back()
    expect(page.get_by_role("combobox", name="By")).to_have_value("day")
    expect(page.get_by_role("slider")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("combobox", name="Period")).to_have_value("30")
    page.go_forward()
    page.reload()
    expect(page.get_by_role("combobox", name="Period")).to_have_value("7")


def test_report_with_a_comparison_fits_a_phone(window: Callable[..., Desk], stage: Stage) -> None:
    answered(stage, "phone", [0, 1, 1, 2, 4, 7, 8, 9])
    desk = window(stage, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = report(desk, week("phone"))
    fits(page)
    page.locator(".plot").scroll_into_view_if_needed()
    box = page.locator(".plot").bounding_box()
    assert box is not None
    page.touchscreen.tap(box["x"] + box["width"] - 20, box["y"] + 80)
    tip = page.locator(".plot .tip")
    expect(tip).to_be_visible()
    fits(page)
    inner = tip.bounding_box()
    assert inner is not None
    assert inner["x"] >= 0
    assert inner["x"] + inner["width"] <= 390
    assert findings(page) == []


def test_report_is_limited_to_a_tag_and_to_conversations_without_a_channel(desk: Desk, stage: Stage) -> None:
    answered(stage, "one tag", [0, 1, 2])
    answered(stage, "other", [0])
    page = report(desk, "reports?days=7&by=tag")
    expect(page.get_by_text("counts in each of them")).to_be_visible()
    page.get_by_role("link", name="one tag").click()
    expect(page).to_have_url(re.compile(r"days=7&tag=one\+tag$"))
    expect(page.get_by_role("slider")).to_be_visible()
    count = page.locator(".facts div").filter(has_text="Count")
    expect(count.locator(".big")).to_have_text("3")
    tags = page.get_by_label("Tags")
    expect(tags).to_have_value("one tag")
    tags.fill("one tag,other")
    tags.press("Enter")
    expect(count.locator(".big")).to_have_text("4")
    tags.fill("")
    tags.press("Tab")
    expect(page).to_have_url(re.compile(r"reports\?days=7$"))
    page.go_back()
    expect(tags).to_have_value("one tag,other")
    page.get_by_role("combobox", name="By").select_option("Channel")
    page.get_by_role("link", name="No channel").click()
    expect(page.get_by_role("combobox", name="Channel", exact=True)).to_have_value("none")
    expect(count.locator(".big")).to_have_text("4")
    with page.expect_download() as kept:
        page.get_by_role("button", name="As CSV").click()
    assert sum(int(line.split(",")[1]) for line in kept.value.path().read_text().splitlines()[1:]) == 4
    assert findings(page) == []
    page.get_by_role("combobox", name="Channel", exact=True).select_option("All channels")
    expect(page).to_have_url(re.compile(r"tag=one\+tag%2Cother$"))


def test_invalid_filter_of_an_address_is_explained(desk: Desk, stage: Stage) -> None:
    desk.tolerated.append(NETWORK)
    desk.sign_in()
    shown(desk, "reports?channel=nonsense", "First response")
    expect(desk.page.get_by_text("Query parameters are not right: channel.")).to_be_visible()
