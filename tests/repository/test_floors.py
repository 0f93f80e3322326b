"""The floors below which the verdict of a tool is a failure."""

from __future__ import annotations

from tests.support.floors import Floor, judged, shortfalls


def test_a_count_at_its_floor_counts_and_one_below_it_is_named() -> None:
    enough, too_few = Floor("answers seen", 5, 5), Floor("lost frames looked for", 1_041, 2_000)
    assert shortfalls([enough]) == []
    assert shortfalls([enough, too_few]) == [
        "judged too little: 1,041 lost frames looked for (at least 2,000)"
    ]


def test_a_report_lists_every_count_with_its_floor() -> None:
    floors = [Floor("answers seen", 7, 5), Floor("cuts judged", 3, 1)]
    assert judged(floors) == "judged: 7 answers seen (at least 5), 3 cuts judged (at least 1)"
