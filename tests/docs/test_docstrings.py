"""Docstrings have one form, and the check finds each deviation."""

import pytest

from tests.docs.docstrings import offences, offences_below
from tests.support.root import ROOT

GOOD = [
    '"""The settings."""',
    '"""A conversation."""\nclass A:\n    """A webhook endpoint."""\n',
    'def f():\n    """Return the newest event."""',
    'def f():\n    """The newest event."""',
    'class A:\n    async def f(self):\n        """Close a conversation, and wait until that is stored."""',
    "def f(): ...",
]

BAD = [
    '"""What this is."""',
    'class A:\n    """Who closes it."""',
    'class A:\n    """Everything that is known."""',
    'def f():\n    """Whether there is any."""',
    'def f():\n    """A page of it."""',
    'class A:\n    @property\n    def f(self):\n        """How many there are."""',
    'async def f():\n    """From here on."""',
]


@pytest.mark.parametrize("layer", ["engine", "http", "storage", "benchmarks"])
def test_every_docstring_begins_with_a_verb_or_with_the(layer: str) -> None:
    assert list(offences_below(ROOT / layer)) == []


@pytest.mark.parametrize("source", GOOD)
def test_a_docstring_of_the_right_form_is_left_alone(source: str) -> None:
    assert list(offences(source)) == []


@pytest.mark.parametrize("source", BAD)
def test_a_docstring_of_another_form_is_found(source: str) -> None:
    assert len(list(offences(source))) == 1
