"""Kept answers, wherever they are stored: found by their name, erased with their subject (ADR 24)."""

from __future__ import annotations

from typing import Any

from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.idempotency.idempotent_requests import StoredResponse
from tests.support.builders import NOON

CONVERSATION, SURVEY = new_id("cnv", NOON), new_id("srv", NOON)
NEIGHBOUR = CONVERSATION[:-1] + ("0" if CONVERSATION[-1] == "1" else "1")
"""A conversation of the same millisecond."""


def answer(number: int, subject: str, place: str, at: int = NOON) -> StoredResponse:
    return StoredResponse(b"same beginning %17d" % number, b"body", subject, b"sealed", at, place)


def shown(found: StoredResponse | None) -> tuple[Any, ...] | None:
    return None if found is None else (found.name, found.subject, found.sealed, found.at)


def test_kept_answer_is_found_by_its_full_name(tx: Any) -> None:
    kept = [
        answer(1, CONVERSATION, CONVERSATION),
        answer(2, NEIGHBOUR, NEIGHBOUR),
        answer(3, new_id("rsp", NOON), SURVEY),
        answer(4, new_id("cnv", NOON), ""),
        answer(5, "short", "short"),
    ]
    for each in kept:
        tx.store_response(each)
    for each in kept:
        assert shown(tx.stored_response(each.name, each.place)) == shown(each)
    assert tx.stored_response(answer(6, "", "").name, CONVERSATION) is None


def test_a_new_answer_counts_in_place_of_one_whose_time_is_over(tx: Any) -> None:
    for place in (CONVERSATION, ""):
        old, new = answer(1, CONVERSATION, place), answer(1, CONVERSATION, place, NOON + 86_400_000)
        tx.store_response(old)
        tx.store_response(new)
        assert shown(tx.stored_response(new.name, place)) == shown(new)


def test_answers_about_a_subject_are_listed_and_emptied_but_stay_known(tx: Any) -> None:
    placed, made, other = (
        answer(1, CONVERSATION, CONVERSATION),
        answer(2, CONVERSATION, ""),
        answer(3, NEIGHBOUR, NEIGHBOUR),
    )
    for each in (placed, made, other):
        tx.store_response(each)
    about = tx.responses_about(CONVERSATION)
    assert sorted(each.name for each in about) == [placed.name, made.name]
    for each in about:
        tx.erase_response(each)
    assert tx.responses_about(CONVERSATION) == []
    for each in (placed, made):
        emptied = replace(each, subject=None, sealed=None)
        assert shown(tx.stored_response(each.name, each.place)) == shown(emptied)
    assert shown(tx.stored_response(other.name, other.place)) == shown(other)


def test_removing_an_object_empties_the_answers_that_show_it_and_no_others(tx: Any) -> None:
    ticket, neighbour = new_id("tkt", NOON), new_id("tkt", NOON)
    tx.conn.execute(
        "INSERT INTO tickets (id, project, title, status, priority, tags, created_at, updated_at, activity) "
        "VALUES (?, 1, 'T', 'OPEN', 1, '[]', 0, 0, 0)",
        (ticket,),
    )
    kept = [answer(1, ticket, ticket), answer(2, ticket, ""), answer(3, neighbour, neighbour)]
    for each in kept:
        tx.store_response(each)
    tx.conn.execute("DELETE FROM tickets WHERE id = ?", (ticket,))
    assert [tx.stored_response(each.name, each.place).sealed for each in kept] == [None, None, b"sealed"]


def test_answers_of_before_are_pruned_and_later_ones_are_not(tx: Any) -> None:
    kept = [answer(number, CONVERSATION, CONVERSATION, NOON + number) for number in range(4)]
    for each in kept:
        tx.store_response(each)
    assert tx.prune_responses(NOON + 2, 10) == 2
    assert [tx.stored_response(each.name, each.place) is None for each in kept] == [True, True, False, False]
