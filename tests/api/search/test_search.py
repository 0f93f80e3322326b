"""The search as one types, through the wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import trio

from deskwire.engine.accounts.people import PERMISSIONS
from deskwire.engine.search.hits import SHOWN_MAX
from tests.support.api.inbox import NOT_MENTIONED
from tests.support.api.service import Service
from tests.support.api.staff import code, organisation_of, person
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import LOOK_S

UNKNOWN: Final = "prj_00000000000000000000000000"


async def searched(service: Service, q: str, **params: str) -> dict[str, Any]:
    """The answer to a search, once the index knows all that is stored."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            answer = await service.dashboard.get("/search", params={"q": q, **params})
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            if found["behind"] is None:
                return found
            await trio.sleep(LOOK_S)  # poll: there is no notification


async def conversations(service: Service, q: str) -> list[str]:
    """The titles of the conversations that are found."""
    found = await searched(service, q)
    return [each["conversation"]["title"] for each in found["conversations"]]


async def test_conversation_is_found_by_word_prefixes_in_title_messages_and_notes(
    service: Service,
) -> None:
    made = await service.create("u1", title="Parcel")
    await service.say(made, "Where is order A-1001, please?")
    note = {"text": "Called ada@ex.org twice", "internal": True}
    assert (await service.dashboard.post(f"/conversations/{made['id']}/messages", json=note)).is_success
    for q in (
        "parc",
        "orde whe",
        "A-1001",
        "a-10",
        "1001",
        "ADA@ex",
        "ex.org",
        "parcel ada@ex.org order",
        "PARCEL",
    ):
        assert await conversations(service, q) == ["Parcel"], q
    for q in ("rcel", "parcel nobody", "a-1002", "da@ex.org", "#", "\u202e", "'"):
        assert await conversations(service, q) == [], q


async def found_ids(service: Service, q: str, part: str, **params: str) -> list[str]:
    """The ids that are found of contacts or tickets."""
    return [each["id"] for each in (await searched(service, q, **params))[part]]


async def test_contacts_and_tickets_are_found_by_words_with_exact_names_first(
    service: Service,
) -> None:
    ids = {}
    for user, identity in {
        "u1": {"name": "Zoë Müller", "email": "zoe@shop.example"},
        "u11": {"name": "Other", "email": "other@shop.example", "phone": "+41 79 123 45 67"},
        "u111": {"name": "Another", "email": "zoe@shop.example.org"},
    }.items():
        ids[user] = (await service.http.put(f"/s2s/contacts/{user}", json=identity)).json()["id"]
    ticket = (await service.dashboard.post("/tickets", json={"title": "Zoe wants a refund"})).json()["id"]
    assert await found_ids(service, "zoe mull", "contacts") == [ids["u1"]]
    assert (await found_ids(service, "u1", "contacts"))[0] == ids["u1"]
    assert (await found_ids(service, "zoe@shop.example", "contacts"))[0] == ids["u1"]
    assert await found_ids(service, ids["u11"], "contacts") == [ids["u11"]]
    assert await found_ids(service, "4179123", "contacts") == [ids["u11"]]
    assert await found_ids(service, "zoe refu", "tickets") == [ticket]
    assert await found_ids(service, ticket, "tickets") == [ticket]


async def test_conversations_are_found_newest_activity_first_and_more_is_reported(
    service: Service,
) -> None:
    made = [await service.create(f"u{number}", title=f"Refund {number}") for number in range(4)]
    await service.say(made[1], "Anything new?")
    assert await conversations(service, "refund") == ["Refund 1", "Refund 3", "Refund 2", "Refund 0"]
    few = await searched(service, "refund", limit="2")
    assert [each["conversation"]["title"] for each in few["conversations"]] == ["Refund 1", "Refund 3"]
    assert few["more"] == {"conversations": True, "contacts": False, "tickets": False}
    assert (await searched(service, "refund", limit="4"))["more"]["conversations"] is False


async def test_hits_have_ranges_and_message_ids_come_first(service: Service) -> None:
    made = await service.create("u1", title="Parcel")
    said = [
        await service.say(made, text)
        for text in ("Order one", "\U0001d538nd Örder two is löst 📦 order", "Nothing")
    ]
    (found,) = (await searched(service, "ORDER los"))["conversations"]
    (hit,) = found["hits"]
    assert hit["messageId"] == said[1]["id"]
    units = hit["text"].encode("utf-16-le")
    assert [units[2 * a : 2 * b].decode("utf-16-le") for a, b in hit["ranges"]] == ["Örder", "lös", "order"]
    assert found["conversation"]["id"] == made["id"]
    assert found["conversation"]["mine"] == {"seenIndex": None, "unread": 3, **NOT_MENTIONED}
    (named,) = (await searched(service, said[0]["id"]))["conversations"]
    assert (named["conversation"]["id"], named["hits"]) == (made["id"], [])
    (titled,) = (await searched(service, "parc"))["conversations"]
    assert titled["hits"] == []


async def test_long_message_is_shown_around_the_hit(service: Service) -> None:
    made = await service.create("u1")
    await service.say(made, "lorem " * 3_000 + "needle " + "ipsum " * 300)
    (found,) = (await searched(service, "needle"))["conversations"]
    ((hit,),) = (found["hits"],)
    ((begin, end),) = hit["ranges"]
    assert hit["text"][begin:end] == "needle"
    assert len(hit["text"]) == SHOWN_MAX


async def test_an_older_message_of_a_long_conversation_is_a_hit(service: Service) -> None:
    made = await service.create("u1")
    said = [await service.say(made, text) for text in ("Where is my parcel?", *("Hello?",) * 45)]
    (found,) = (await searched(service, "parcel"))["conversations"]
    assert [hit["messageId"] for hit in found["hits"]] == [said[0]["id"]]


async def test_words_that_overlap_are_marked_as_one(service: Service) -> None:
    await service.say(await service.create("u1"), "住所は東京都です")
    (found,) = (await searched(service, "東京都"))["conversations"]
    ((hit,),) = (found["hits"],)
    assert [hit["text"][begin:end] for begin, end in hit["ranges"]] == ["東京都"]


async def test_new_title_replaces_the_old_one_in_the_index(service: Service) -> None:
    made = await service.create("u1", title="Oldish words")
    await service.say(made, "words stay")
    assert await conversations(service, "oldish words") == ["Oldish words"]
    await service.http.patch(f"/s2s/conversations/{made['id']}", json={"title": "Newer"})
    assert await conversations(service, "oldish") == []
    assert await conversations(service, "newer words") == ["Newer"]
    await service.http.patch(f"/s2s/conversations/{made['id']}", json={"title": None})
    assert await conversations(service, "newer") == []
    assert [each["hits"][0]["text"] for each in (await searched(service, "words"))["conversations"]] == [
        "words stay"
    ]


async def test_hidden_and_archived_conversations_are_found_but_deleted_ones_are_not(
    service: Service,
) -> None:
    kept = await service.create("u1", title="Marker kept")
    gone = await service.create("u2", title="Marker gone")
    await service.dashboard.patch(f"/conversations/{kept['id']}", json={"archived": True})
    assert await conversations(service, "marker") == ["Marker gone", "Marker kept"]
    assert (await service.dashboard.delete(f"/conversations/{gone['id']}")).is_success
    now = (await service.dashboard.get("/search", params={"q": "marker"})).json()
    assert [each["conversation"]["id"] for each in now["conversations"]] == [kept["id"]]
    assert await conversations(service, "marker") == ["Marker kept"]


async def test_answer_reports_the_lag_of_the_index(service: Service, tmp_path: Path) -> None:
    made = await service.create("u1", title="Known")
    assert await conversations(service, "known") == ["Known"]
    for number in range(3):
        await service.say(made, f"told {number}")
    answer = (await service.dashboard.get("/search", params={"q": "told"})).json()
    assert answer["behind"] is None or answer["behind"]["messages"] in (1, 2, 3)
    assert len((await searched(service, "told"))["conversations"]) == 1


@pytest.mark.parametrize("role", ["viewer", "agent", "admin", "owner"])
async def test_every_member_may_search_readable_objects(service: Service, role: str) -> None:
    await service.create("u1", title="Parcel")
    await searched(service, "parcel")
    async with person(service, role) as one:
        answer = await one.http.get(
            "/search", params={"q": "parcel"}, headers={"project": service.demo["projectId"]}
        )
        assert answer.status_code == 200
        assert [each["conversation"]["title"] for each in answer.json()["conversations"]] == ["Parcel"]
        assert (answer.json()["contacts"], answer.json()["tickets"]) == ([], [])


async def test_unreadable_or_unrequested_part_is_null(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = await searched(service, "x", **{"in": "tickets"})
    assert (answer["conversations"], answer["contacts"], answer["tickets"]) == (None, None, [])
    monkeypatch.setitem(PERMISSIONS, "owner", PERMISSIONS["owner"] - {"contacts.read", "tickets.read"})
    answer = await searched(service, "x")
    assert (answer["conversations"], answer["contacts"], answer["tickets"]) == ([], None, None)


async def test_search_finds_nothing_of_another_tenant(service: Service) -> None:
    await service.create("u1", title="Secretive")
    path = f"/organisations/{await organisation_of(service)}/projects"
    other = (await service.dashboard.post(path, json={"name": "Other"})).json()
    await searched(service, "secretive")
    answer = await service.dashboard.get(
        "/search", params={"q": "secretive"}, headers={"project": other["id"]}
    )
    assert (answer.status_code, answer.json()["conversations"]) == (200, [])
    async with person(service, "viewer") as stranger:
        refused = await stranger.http.get("/search", params={"q": "x"}, headers={"project": UNKNOWN})
        assert code(refused) == (404, "project_not_found")
    assert (await service.http.get("/search", params={"q": "x"})).status_code == 401


@pytest.mark.parametrize(
    ("params", "problems"),
    [
        ({}, [("/q", "required")]),
        ({"q": ""}, [("/q", "too_short")]),
        ({"q": "x" * 201}, [("/q", "too_long")]),
        ({"q": "x", "in": "conversations,files"}, [("/in", "not_allowed")]),
        ({"q": "x", "in": ""}, [("/in", "not_allowed")]),
        ({"q": "x", "limit": "51"}, [("/limit", "too_large")]),
        ({"q": "x", "limit": "0", "page": "2"}, [("/limit", "too_small"), ("/page", "unknown_parameter")]),
    ],
)
async def test_every_wrong_parameter_is_named(
    service: Service, params: dict[str, str], problems: list[tuple[str, str]]
) -> None:
    answer = await service.dashboard.get("/search", params=params)
    assert code(answer) == (400, "bad_query")
    assert [(each["pointer"], each["code"]) for each in answer.json()["errors"]] == problems


@pytest.mark.parametrize(
    "q",
    [
        "...", '"', "' OR 1=1 --", "a* NEAR(b)", "{title}: x", "-", "NOT AND OR", "%", "\u202e\u2066",
        "\ufffd", "\U0010ffff", "x " * 100, "é" * 200, "🙂", "-" * 200, "a-" * 100, "日" * 200, "\u0301" * 200,
    ],
)  # fmt: skip
async def test_any_query_is_answered(service: Service, q: str) -> None:
    await service.create("u1", title="Nothing of the kind")
    found = await searched(service, q)
    assert [each["conversation"]["title"] for each in found["conversations"]] in ([], ["Nothing of the kind"])
