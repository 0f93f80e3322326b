"""Reports over HTTP: for each role and kind of credential, for one project only, and with all problems of a query."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio

from deskwire.engine.conversations.conversation import AUTHOR_TYPES
from deskwire.storage.check.rules import broken_rules
from deskwire.storage.dialect import POSTGRES, SQLITE
from deskwire.storage.sqlite.log import add_untimed
from tests.api.customers.browsing import begin
from tests.support.api.customers import Browser, make_channel, signed
from tests.support.api.import_lines import PAST, bring, conversation, message
from tests.support.api.service import Service, running
from tests.support.api.staff import person
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import LOOK_S
from tests.support.stores import beside, chosen

METRICS: Final = ("first-response", "time-to-close", "csat", "volume", "backlog")
DAY: Final = {"from": "2024-03-01", "to": "2024-03-02"}
NOTHING: Final = {"mean": None, "median": None, "p90": None, "min": None, "max": None}


async def report(http: httpx.AsyncClient, metric: str, **params: str) -> dict[str, Any]:
    answer = await http.get(f"/reports/{metric}", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def rows(http: httpx.AsyncClient, metric: str, **params: str) -> dict[str | None, dict[str, Any]]:
    """Return the rows of a report by their keys."""
    return {row["key"]: row for row in (await report(http, metric, **params))["rows"]}


def problems(directory: Path) -> list[str]:
    dialect = POSTGRES if chosen() == "postgres" else SQLITE
    with beside(directory) as connection:
        return [each.message for each in broken_rules(connection, dialect)]


async def history(service: Service) -> str:
    """Import a conversation that was answered after 5 s and closed after half an hour; return who answered."""
    user = str((await service.dashboard.get("/users/me")).json()["id"])
    closing = {"status": "CLOSED", "closedBy": "agent", "closedAt": PAST.format(30, 0)}
    agent = {"type": "agent", "id": user}
    await bring(
        service.http,
        conversation("z-1", rating=9, ratedAt=PAST.format(31, 0), **closing),
        message("z-1", 0),
        message("z-1", 5, author=agent),
        message("z-1", 7, author=agent),
        message("z-1", 8, author={"type": "bot"}),
    )
    return user


@pytest.mark.parametrize("author", AUTHOR_TYPES)
async def test_a_message_of_each_author_type_counts_under_its_own_name(service: Service, author: str) -> None:
    """A new type needs its own figure, and a migration for the triggers that SQLite counts messages by."""
    agent = str((await service.dashboard.get("/users/me")).json()["id"])
    by = {"type": author, "id": agent} if author == "agent" else {"type": author}
    await bring(service.http, conversation("z-1"), message("z-1", 0, author=by))
    total = (await report(service.dashboard, "volume", **DAY))["total"]
    assert {name: count for name, count in total.items() if count} == {
        "conversationsCreated": 1,
        f"{author}Messages": 1,
        "messages": 1,
    }
    if chosen() == "sqlite":
        with beside(service.directory) as connection:
            add_untimed(connection)
            connection.execute(
                "UPDATE messages SET author_type = author_type"
            )  # a trigger counts the messages again
    assert (await report(service.dashboard, "volume", **DAY))["total"] == total
    assert problems(service.directory) == []


async def test_an_imported_history_counts_at_its_own_time(service: Service) -> None:
    user = await history(service)
    five = {"mean": 5.0, "median": 5.0, "p90": 5.0, "min": 5.0, "max": 5.0}
    found = await report(service.dashboard, "first-response", by="agent", **DAY)
    assert found["total"] == {"count": 1, **five}
    assert [(row["key"], row["count"]) for row in found["rows"]] == [(user, 1)]
    assert found["rows"][0]["name"] is not None
    assert (found["from"], found["to"]) == ("2024-03-01T00:00:00.000Z", "2024-03-02T00:00:00.000Z")
    assert (found["timezone"], found["by"], found["imported"], found["omitted"]) == ("UTC", "agent", True, 0)
    closed = await report(service.dashboard, "time-to-close", **DAY)
    assert (closed["total"]["count"], closed["total"]["median"], closed["rows"]) == (1, 1_800.0, [])
    csat = await report(service.dashboard, "csat", by="agent", **DAY)
    assert (csat["total"]["average"], csat["total"]["csat"], csat["rows"][0]["key"]) == (9.0, 100.0, user)
    assert csat["total"]["scores"] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]
    volume = (await report(service.dashboard, "volume", **DAY))["total"]
    assert (volume["conversationsCreated"], volume["conversationsClosed"], volume["messages"]) == (1, 1, 4)
    assert (volume["contactMessages"], volume["agentMessages"], volume["botMessages"]) == (1, 2, 1)
    backlog = await rows(service.dashboard, "backlog", by="day", **{"from": "2024-02-29", "to": "2024-03-02"})
    assert {key: row["open"] for key, row in backlog.items()} == {"2024-02-29": 0, "2024-03-01": 0}
    assert problems(service.directory) == []


async def test_imported_conversations_can_be_left_out(service: Service) -> None:
    await history(service)
    await service.create("u2", message={"text": "Hello"})
    for metric in METRICS:
        found = await report(service.dashboard, metric, imported="false", by="tag")
        assert found["imported"] is False
        assert found["rows"] == ([] if metric not in ("volume", "backlog") else found["rows"])
    assert (await report(service.dashboard, "volume", imported="false", **DAY))["total"]["messages"] == 0
    volume = (await report(service.dashboard, "volume", imported="false"))["total"]
    assert (volume["conversationsCreated"], volume["messages"]) == (1, 1)
    days = await rows(service.dashboard, "backlog", imported="false", by="day")
    assert [row["open"] for row in days.values()] == [0] * 29 + [1]


async def test_live_changes_are_counted_in_their_own_commit(service: Service) -> None:
    """A reopening by the contact, a changed rating, and a bot's first answer each count correctly."""
    user = str((await service.dashboard.get("/users/me")).json()["id"])
    made = await service.create("u1", message={"text": "Hello?"})
    await service.say(made, "A bot says hello", author={"type": "bot"})
    path = f"/conversations/{made['id']}"
    answers = [
        await service.dashboard.post(f"{path}/messages", json={"text": "A note", "internal": True}),
        await service.dashboard.post(f"{path}/messages", json={"text": "It is on its way."}),
        await service.dashboard.patch(path, json={"tags": ["late", "vip"]}),
    ]
    assert all(answer.is_success for answer in answers), [answer.text for answer in answers]
    await service.do(made, "close", closedBy="agent")
    await service.do(made, "rating", rating=2)
    await service.say(made, "But it is not!")
    await service.do(made, "close", closedBy="agent")
    await service.do(made, "rating", rating=8)

    assert (await rows(service.dashboard, "first-response", by="agent"))[user]["count"] == 1
    assert (await rows(service.dashboard, "time-to-close", by="agent"))[user]["count"] == 2
    csat = (await rows(service.dashboard, "csat", by="agent"))[user]
    assert (csat["count"], csat["average"], csat["csat"]) == (1, 8.0, 100.0)
    volume = await rows(service.dashboard, "volume", by="agent")
    assert volume[user]["agentMessages"] == volume[user]["conversationsReopened"] == 1
    assert volume[user]["conversationsClosed"] == 2
    assert (volume[None]["contactMessages"], volume[None]["botMessages"]) == (2, 1)
    tags = await rows(service.dashboard, "volume", by="tag")
    assert {key: row["messages"] for key, row in tags.items()} == {"late": 4, "vip": 4}
    assert problems(service.directory) == []


async def test_a_comment_with_the_same_rating_neither_moves_it_nor_counts_again(service: Service) -> None:
    await history(service)
    (made,) = (await service.dashboard.get("/conversations")).json()["items"]
    before = await report(service.dashboard, "csat", **DAY)
    assert before["total"]["count"] == 1
    commented = await service.do(made, "rating", rating=9, comment="Quick, and kind.")
    assert commented["comment"] == "Quick, and kind."
    assert (await report(service.dashboard, "csat", **DAY))["total"] == before["total"]
    assert (await report(service.dashboard, "csat"))["total"]["count"] == 0
    await service.do(made, "rating", rating=4, comment="On second thoughts, slow.")
    assert (await report(service.dashboard, "csat", **DAY))["total"]["count"] == 0
    assert (await report(service.dashboard, "csat"))["total"]["average"] == 4.0
    assert problems(service.directory) == []


async def test_last_team_and_the_agent_who_takes_over_are_counted(
    service: Service,
) -> None:
    user = (await service.dashboard.get("/users/me")).json()
    team = (await service.dashboard.post("/teams", json={"name": "Returns"})).json()
    made = await service.create("u1", message={"text": "Hello?"})
    await service.do(made, "assign", assignee={"type": "team", "id": team["id"]})
    backlog = await rows(service.dashboard, "backlog", by="team")
    assert (backlog[team["id"]]["name"], backlog[team["id"]]["open"], backlog[team["id"]]["waiting"]) == (
        "Returns",
        1,
        1,
    )
    assert set(await rows(service.dashboard, "backlog", by="agent")) == {None}
    await service.do(made, "assign", assignee={"type": "user", "id": user["id"]})
    await service.do(made, "close")
    assert (await rows(service.dashboard, "time-to-close", by="team"))[team["id"]]["count"] == 1
    assert set(await rows(service.dashboard, "time-to-close", by="agent")) == {user["id"]}
    assert (await service.dashboard.delete(f"/teams/{team['id']}")).is_success
    (row,) = (await report(service.dashboard, "time-to-close", by="team"))["rows"]
    assert (row["key"], row["name"]) == (team["id"], None)


@pytest.mark.parametrize("role", ["viewer", "agent", "admin"])
async def test_every_role_reads_reports_and_so_does_a_server_key(service: Service, role: str) -> None:
    await service.create("u1", message={"text": "Hello"})
    async with person(service, role) as someone:
        someone.http.headers["project"] = service.demo["projectId"]
        for metric in METRICS:
            for http in (someone.http, service.http):
                assert (await report(http, metric))["total"] is not None
                assert (await http.get(f"/reports/{metric}.csv")).status_code == 200


async def asked_in(service: Service, channel: dict[str, Any], user: str) -> dict[str, Any]:
    """Start a conversation of a customer in a channel, and return it."""
    async with Browser(service, channel) as browser:
        assert (await browser.start(signed(channel, user))).status_code == 200
        return await begin(browser)


async def test_reports_by_channel_and_of_channels(service: Service) -> None:
    shop, help_desk = await make_channel(service), await make_channel(service, name="+Help")
    made = [
        await asked_in(service, shop, "c1"),
        await asked_in(service, shop, "c2"),
        await asked_in(service, help_desk, "c3"),
        await service.create("u4", message={"text": "By the API"}),
    ]
    for each in made:
        answer = await service.dashboard.post(f"/conversations/{each['id']}/messages", json={"text": "Yes"})
        assert answer.is_success, answer.text
        await service.do(each, "rating", rating=9)
    figure = {"first-response": "count", "csat": "count", "volume": "messages", "backlog": "open"}
    for metric, name in figure.items():
        found = await report(service.dashboard, metric, by="channel")
        times = 2 if metric == "volume" else 1
        assert [(row["key"], row["name"], row[name]) for row in found["rows"]] == [
            (shop["id"], "Shop", 2 * times),
            (help_desk["id"], "+Help", times),
            (None, None, times),
        ], metric
        assert (found["channel"], found["tag"]) == (None, None)
        for channel, number in (
            (shop["id"], 2),
            ("none", 1),
            (f"{shop['id']},none", 3),
            (f"{shop['id']},{help_desk['id']}", 3),
            ("chn_00000000000000000000000000", 0),
        ):
            limited = await report(service.dashboard, metric, channel=channel)
            assert (limited["total"][name], limited["channel"]) == (number * times, channel.split(","))
    lines = (await service.http.get("/reports/volume.csv", params={"by": "channel"})).text.splitlines()
    assert lines[0].startswith("\ufeffchannelId,channelName,conversationsCreated,")
    assert lines[2].startswith(f"{help_desk['id']},'+Help,1,")
    assert (await service.http.delete(f"/channels/{shop['id']}")).is_success
    rows_now = (await report(service.dashboard, "csat", by="channel"))["rows"]
    assert (rows_now[0]["key"], rows_now[0]["name"]) == (shop["id"], None)


async def test_conversation_with_several_tags_counts_in_each_and_once_in_total(service: Service) -> None:
    for user, tags in (("u1", ["vip", "late"]), ("u2", ["vip"]), ("u3", [])):
        made = await service.create(user, message={"text": "Hello"})
        path = f"/conversations/{made['id']}"
        assert (await service.dashboard.patch(path, json={"tags": tags})).is_success
        await service.do(made, "close")
    found = await report(service.dashboard, "time-to-close", by="tag")
    assert {row["key"]: row["count"] for row in found["rows"]} == {"vip": 2, "late": 1, None: 1}
    assert found["total"]["count"] == 3
    for tag, number in (("VIP", 2), ("Late", 1), ("late,VIP", 2), ("nothing", 0)):
        limited = await report(service.dashboard, "time-to-close", tag=tag)
        assert limited["total"]["count"] == number, tag
    late = await rows(service.dashboard, "volume", tag="late", by="tag")
    assert {key: row["messages"] for key, row in late.items()} == {"vip": 1, "late": 1}
    text = (await service.http.get("/reports/time-to-close.csv", params={"tag": "late"})).text
    assert text.splitlines()[1].startswith("1,")


async def test_another_projects_conversations_never_count(service: Service) -> None:
    (organisation,) = (await service.dashboard.get("/organisations")).json()["items"]
    made = await service.dashboard.post(
        f"/organisations/{organisation['id']}/projects", json={"name": "Other"}
    )
    other = {"project": made.json()["id"]}
    await history(service)
    first = await service.create("u1", message={"text": "Hello"})
    await service.do(first, "rating", rating=9)
    for metric in METRICS:
        for by in ("agent", "team", "channel", "tag", "day"):
            answer = await service.dashboard.get(f"/reports/{metric}", params={"by": by}, headers=other)
            found = answer.json()
            sizes = [
                found["total"].get(name, 0) for name in ("count", "open", "messages", "conversationsCreated")
            ]
            assert sizes == [0] * 4, metric
            assert all(row["key"] is not None for row in found["rows"])
    answer = await service.dashboard.get(
        "/reports/volume", headers={"project": "prj_00000000000000000000000000"}
    )
    assert answer.status_code == 404


async def test_everything_that_is_wrong_with_a_query_is_named_at_once(service: Service) -> None:
    wrong = {
        "from": "yesterday",
        "to": "2026-13-01",
        "timezone": "Mars/Base",
        "by": "colour",
        "imported": "yes",
        "channel": "prj_1",
        "tag": "vip,,late",
        "x": "1",
    }
    answer = await service.dashboard.get("/reports/volume", params=wrong)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_query")
    assert {each["pointer"] for each in answer.json()["errors"]} == {f"/{name}" for name in wrong}
    for params, pointer in (
        ({"from": "2026-03-02", "to": "2026-03-01"}, "/to"),
        ({"from": "9000-01-01"}, "/from"),
        ({"from": "2024-01-01", "to": "2025-06-01"}, "/to"),
        ({"from": "2024-01-01T00:00:00"}, "/from"),
        ({"from": "1960-01-01", "to": "1960-01-02"}, "/from"),
        ({"timezone": "../UTC"}, "/timezone"),
        ({"timezone": "Europe"}, "/timezone"),
        ({"timezone": ""}, "/timezone"),
        ({"from": ""}, "/from"),
        ({"channel": ""}, "/channel"),
        ({"channel": "none,none"}, "/channel"),
        ({"channel": "chn_1"}, "/channel"),
        ({"tag": ""}, "/tag"),
        ({"tag": "x" * 500}, "/tag"),
        ({"tag": ",".join(map(str, range(11)))}, "/tag"),
    ):
        refused = await service.dashboard.get("/reports/volume", params=params)
        assert refused.status_code == 400, params
        assert refused.json()["errors"][0]["pointer"] == pointer, params
    for metric in ("backlog", "backlog.csv"):
        refused = await service.dashboard.get(f"/reports/{metric}", params={"by": "team", **DAY})
        assert [each["pointer"] for each in refused.json()["errors"]] == ["/from", "/to"]


async def test_a_period_may_have_four_hundred_days_and_may_be_empty(service: Service) -> None:
    longest = {"from": "2024-03-31", "to": "2025-05-05", "timezone": "Europe/Berlin"}
    found = await report(service.dashboard, "volume", by="day", **longest)
    assert len(found["rows"]) == 400
    assert (found["rows"][0]["key"], found["rows"][-1]["key"]) == ("2024-03-31", "2025-05-04")
    for metric in METRICS:
        empty = await report(
            service.dashboard, metric, by="day", **{"from": "2024-03-01", "to": "2024-03-01"}
        )
        assert (empty["rows"], empty["omitted"]) == ([], 0)
    assert (await report(service.dashboard, "csat", **DAY))["total"]["csat"] is None
    assert (await report(service.dashboard, "first-response", **DAY))["total"] == {"count": 0, **NOTHING}


async def test_days_follow_the_time_zone_when_clocks_are_set_back(service: Service) -> None:
    """In Berlin 2024-10-27 has 25 hours and begins at 22:00 UTC of the previous day."""
    times = (
        "2024-10-26T21:59:59.999Z",
        "2024-10-26T22:00:00Z",
        "2024-10-27T22:59:59.999Z",
        "2024-10-27T23:00:00Z",
    )
    await bring(service.http, *(conversation(f"c-{at}", createdAt=at) for at in times))
    berlin = {"from": "2024-10-26", "to": "2024-10-29", "timezone": "Europe/Berlin"}
    days = await rows(service.dashboard, "volume", by="day", **berlin)
    counted = {key: row["conversationsCreated"] for key, row in days.items()}
    assert counted == {"2024-10-26": 1, "2024-10-27": 2, "2024-10-28": 1}
    sunday = {"from": "2024-10-27", "to": "2024-10-28", "timezone": "Europe/Berlin"}
    found = await report(service.dashboard, "volume", **sunday)
    assert (found["from"], found["to"]) == ("2024-10-26T22:00:00.000Z", "2024-10-27T23:00:00.000Z")
    assert found["total"]["conversationsCreated"] == 2
    backlog = await rows(service.dashboard, "backlog", by="day", **berlin)
    assert {key: row["open"] for key, row in backlog.items()} == {
        "2024-10-26": 1,
        "2024-10-27": 3,
        "2024-10-28": 4,
    }


async def test_the_csv_has_the_figures_of_the_json_and_no_formula(service: Service) -> None:
    made = await service.create("u1", message={"text": "Hello"})
    patched = await service.dashboard.patch(
        f"/conversations/{made['id']}", json={"tags": ["=cmd|' /C calc'!A0", "vip"]}
    )
    assert patched.is_success
    await service.do(made, "rating", rating=10)
    await service.do(made, "close")
    for metric in METRICS:
        for by in ("agent", "team", "channel", "tag", "day", None):
            params = {} if by is None else {"by": by}
            answer = await service.http.get(f"/reports/{metric}.csv", params=params)
            assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
            assert answer.headers["Content-Disposition"].startswith(f'attachment; filename="{metric}_')
            text = answer.content.decode()
            assert text.startswith("\ufeff")
            assert text.count("\r\n") == text.count("\n")
            lines = [*csv.reader(StringIO(text[1:]))]
            shown = await report(service.dashboard, metric, **params)
            assert len(lines) == 1 + (1 if by is None else len(shown["rows"]))
            assert not any(cell.startswith(("=", "+", "-", "@")) for line in lines for cell in line)
    tagged = (await service.http.get("/reports/csat.csv", params={"by": "tag"})).text
    scores = ",".join(f"scores{each}" for each in range(11))
    assert tagged.splitlines()[0] == f"\ufefftag,count,average,csat,{scores}"
    assert tagged.splitlines()[2] == f"vip,1,10.0,100.0,{'0,' * 10}1"


async def test_erased_conversation_is_in_no_report(service: Service) -> None:
    made, kept = (
        await service.create("u1", message={"text": "Hello"}),
        await service.create("u2", message={"text": "Hi"}),
    )
    for each in (made, kept):
        await service.dashboard.post(f"/conversations/{each['id']}/messages", json={"text": "Yes?"})
        await service.do(each, "rating", rating=9)
        await service.do(each, "close")
    assert (await service.http.delete("/s2s/contacts/u1")).is_success
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            if (await service.http.get(f"/s2s/conversations/{made['id']}")).status_code == 404:
                break
            await trio.sleep(LOOK_S)  # poll: there is no notification
    for metric, name in (
        ("first-response", "count"),
        ("time-to-close", "count"),
        ("csat", "count"),
        ("volume", "conversationsCreated"),
    ):
        assert (await report(service.dashboard, metric))["total"][name] == 1, metric
    assert (await report(service.dashboard, "volume"))["total"]["messages"] == 2
    with beside(service.directory) as connection:
        assert connection.execute("SELECT count(DISTINCT conversation) FROM milestones").fetchone() == (1,)


async def test_reports_are_the_same_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        await history(service)
        before = [(await report(service.dashboard, metric, **DAY))["total"] for metric in METRICS[:4]]
    async with running(tmp_path) as service:
        after = [(await report(service.dashboard, metric, **DAY))["total"] for metric in METRICS[:4]]
    assert before == after
