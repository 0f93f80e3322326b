"""The version of a database, which is the number of its newest migration, and of the program that migrated it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from deskwire.engine.core.build import version


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


def newer_program(unknown: Sequence[str], programs: Mapping[str, str | None]) -> str:
    """Return the words that name a newer program, to follow "written by": "a newer Deskwire, 0.3.0 (it has m0070_seats)".

    Args:
        unknown: names of the applied migrations that this program does not know, oldest first. At least one.
        programs: for each applied migration, the version that applied it; None before 0.2.0.
    """
    newest = programs.get(unknown[-1])
    return f"a newer Deskwire{f', {newest}' if newest else ''} (it has {', '.join(unknown)})"


def this_program() -> str:
    """Return the sentence that names this program's version."""
    return f"This is {version()}."
