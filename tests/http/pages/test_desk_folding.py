"""The desk and the service fold texts alike: texts equal for one are equal for the other."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Sequence

import pytest

from deskwire.engine.core.folding import fold, fold_name
from tests.support.desk_functions import desk_results

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")


def folded_by_desk(texts: Sequence[str], function: str = "fold") -> list[str]:
    """Return what the desk's function makes of each text."""
    return desk_results("core/folding.js", function, [[each] for each in texts])


def test_the_desk_folds_every_character_as_the_service() -> None:
    assigned = [
        chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")
    ]
    ours = [fold(each) for each in assigned]
    theirs, again = folded_by_desk(assigned), folded_by_desk(ours)
    pairs = zip(assigned, ours, theirs, again, strict=True)
    assert [each for each, _, its, of_ours in pairs if its != of_ours] == []
    assert [each for each, its, own in zip(assigned, theirs, ours, strict=True) if fold(its) != own] == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Доставка", "доставка"),
        ("Ärger", "arger"),
        ("caf\u00e9", "cafe\u0301"),
        ("\uff36\uff29\uff30", "vip"),
        ("\u0645\u0640\u0640\u0631\u062d\u0628\u0627", "\u0645\u0631\u062d\u0628\u0627"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u062e\u0648\u0627\u0647\u0645"),
        ("\u2764\ufe0f", "\u2764"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("STRASSE", "straße"),
        ("returns  desk ", "Returns Desk"),
    ],
)
def test_names_that_read_alike_have_one_key_on_both_sides(one: str, other: str) -> None:
    assert fold_name(one) == fold_name(other)
    first, second = folded_by_desk([one, other], "foldName")
    assert first == second


def test_a_name_that_folds_to_nothing_is_its_own_key() -> None:
    assert folded_by_desk(["\u0640", "\u0301"], "foldName") == ["\u0640", "\u0301"]
