"""The version of a database in words: the number of the newest migration that it has."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def outdated(applied: Collection[str], known: Sequence[str]) -> str | None:
    """Return what is said of a database that lacks migrations, to go on behind its name; None if it lacks none.

    Args:
        applied: the names of those that it has.
        known: the names of all of the program's, in their order.
    """
    pending = [name for name in known if name not in applied]
    if not pending:
        return None
    present = max((number(name) for name in applied), default=0)
    return f"is of version {present}, and this Deskwire needs version {number(known[-1])} (it lacks {pending[0]})."


def number(migration: str) -> int:
    """Return the number that a migration's name begins with: 12 of `m0012_imports`."""
    return int(migration[1:5])
