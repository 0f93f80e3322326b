"""A rule between rows, and the fragments of its query for each dialect."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from deskwire.storage.dialect import Statement, either


class CheckRule(Struct, frozen=True):
    """A query for violations, and the sentence that reports them.

    Args:
        is_broken: decides whether a row of the query is a violation, if SQL can't; None if every row is one.
    """

    code: str
    sentence: str
    query: Statement
    is_broken: Callable[..., bool] | None = None


def rule(
    code: str, sentence: str, query: str, is_broken: Callable[..., bool] | None = None, **parts: Statement
) -> CheckRule:
    """Return a rule, with the fragments that its query has in braces for each dialect."""
    return CheckRule(code, sentence, either(query, **parts), is_broken)
