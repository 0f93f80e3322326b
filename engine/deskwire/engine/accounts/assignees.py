"""Users who can be given conversations and tickets: those who may work on them."""

from __future__ import annotations

from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.core.errors import Problem

_UNKNOWN = "There is no such user in this project."
_VIEWER = "{} is a viewer, who can't work on conversations and tickets; give them another role first."


def user_to_assign(
    reader: AccountReader, organisation: int, user_id: str, pointer: str
) -> tuple[str, None] | tuple[None, Problem]:
    """Return the name of a user who can be given work, or the problem: `unknown` or `viewer`, at this pointer."""
    name = reader.member_name(organisation, user_id)
    if name is None:
        return None, Problem(pointer, "unknown", _UNKNOWN)
    if reader.assignee_name(organisation, user_id) is None:
        return None, Problem(pointer, "viewer", _VIEWER.format(name))
    return name, None
