"""The version of a database, which is the number of its newest migration."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def outdated(applied: Collection[str], known: Sequence[str]) -> str | None:
    """Return a message about missing migrations, to follow the name of the database; None if none is missing.

    Args:
        applied: names of the applied migrations.
        known: names of all migrations of the program, in order.
    """
    pending = [name for name in known if name not in applied]
    if not pending:
        return None
    present = max((number(name) for name in applied), default=0)
    return f"is of version {present}, and this Deskwire needs version {number(known[-1])} (it lacks {pending[0]})."


def number(migration: str) -> int:
    """Return the number in the name of a migration: 12 for `m0012_imports`."""
    return int(migration[1:5])
