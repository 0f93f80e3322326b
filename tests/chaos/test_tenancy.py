"""The verdict on the additional projects finds each kind of planted broken promise."""

from __future__ import annotations

from math import inf
from typing import Any

import orjson
import pytest

from tests.chaos.tenancy import tenancy, words_in
from tests.chaos.tenants import Life, Page, Told
from tests.chaos.verdict import Fault
from tests.support.replay.history import Arrival

STAYS, GOES = "tenant0word1end", "tenant0word2end"


def event(number: int, word: str, sequence: int | None = None) -> dict[str, Any]:
    data = {"conversation": {"id": f"cnv_{word}"}, "message": {"text": f"{word} {number}"}}
    return {"id": f"evt_{number}", "sequence": sequence or number, "data": data}


def page(at: float, *events: dict[str, Any]) -> Page:
    return Page(at, orjson.dumps({"items": list(events)}))


def whole() -> Told:
    """Return a correct record: one conversation stays, the other's erasure was answered at 5, and all readers have seen both."""
    told = Told("tenant0word")
    told.lives.append(Life(STAYS, "one", f"cnv_{STAYS}", [f"{STAYS} 1", f"{STAYS} 2"]))
    told.lives.append(Life(GOES, "two", f"cnv_{GOES}", [f"{GOES} 3"], "contact", 5.0))
    kept = [event(1, STAYS), event(2, STAYS)]
    told.pages.append(page(2, *kept, event(3, GOES, 1)))
    told.last.append(page(9, *kept))
    for journal in (told.mail, told.stream):
        for each in (*kept, event(3, GOES, 1)):
            journal.record(Arrival(3, orjson.dumps(each)))
    return told


def found_in(told: Told, words: str, *faults: Fault, **left: list[str]) -> bool:
    return any(words in each for each in tenancy([told], faults, left))


def test_correct_project_has_no_problems() -> None:
    assert list(tenancy([whole()], [], {"events": [STAYS]})) == []


def test_page_requested_after_the_erasure_that_shows_it_is_found() -> None:
    told = whole()
    told.pages.append(page(4.9, event(3, GOES)))
    assert not found_in(told, "the feed shows")
    told.pages.append(page(5.1, event(3, GOES)))
    assert found_in(told, f"the feed shows {GOES}, 0.10 s after its erasure")


def test_request_refused_without_a_reason_is_found() -> None:
    told = whole()
    told.refused.append("POST /cnv_1/messages was refused: 404")
    assert found_in(told, "was refused: 404")


def test_answer_that_shows_erased_data_is_found() -> None:
    told = whole()
    told.lives[1].shown.append("/s2s/contacts/two")
    assert found_in(told, f"/s2s/contacts/two shows {GOES}, which is erased")


@pytest.mark.parametrize(("journal", "name"), [("mail", "a webhook"), ("stream", "the stream")])
def test_late_event_after_the_erasure_is_found_unless_a_fault_delayed_it(journal: str, name: str) -> None:
    told = whole()
    getattr(told, journal).record(Arrival(7, orjson.dumps(event(3, GOES))))
    assert found_in(told, f"{name} brings {GOES}, 2.00 s after its erasure")
    assert found_in(told, f"{name} brings", Fault("begun too late", 5.5, 7.0))
    assert found_in(told, f"{name} brings", Fault("over too early", 4.0, 5.5))
    assert not found_in(told, f"{name} brings", Fault("held up", 4.9, 6.9))


def test_unanswered_erasure_promises_nothing() -> None:
    told = whole()
    told.lives[1].erased_at = inf
    told.pages.append(page(9, event(3, GOES)))
    assert list(tenancy([told], [], {"events": [GOES]})) == []


def test_data_of_another_project_is_found() -> None:
    told = whole()
    told.stream.record(Arrival(7, orjson.dumps(event(9, "tenant1word1end"))))
    assert found_in(told, "tenant0word is shown tenant1word1end, which is none of its own")


def test_lost_misnumbered_or_undelivered_message_is_found() -> None:
    told = whole()
    told.last[:] = [page(9, event(1, STAYS), event(4, STAYS))]
    assert found_in(told, f"{STAYS} 2 was acknowledged and is there 0 times")
    assert found_in(told, f"the events of {STAYS} are numbered [1, 4]")
    assert found_in(told, "the endpoint of tenant0word was not given evt_4")
    assert found_in(told, "the stream of tenant0word was not given evt_4")


def test_erased_words_in_rows_are_found() -> None:
    row = (f"(7,a,\\x{GOES.encode().hex()})", 1)
    assert words_in([row, (f"{STAYS} 1",)]) == [STAYS, GOES]
    assert found_in(whole(), f"a row of attempts has {GOES}, which is erased", attempts=words_in([row]))
