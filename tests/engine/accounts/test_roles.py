"""The protection of owners: an organisation keeps one, and no other role can take an owner's role away."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.accounts.people import ROLES, Member, Role, User
from deskwire.engine.accounts.roles import ActingMember, check_change, check_grant
from deskwire.engine.core.errors import Conflict, DomainError, Forbidden

ANY_ROLE = st.sampled_from(ROLES)
PEOPLE = 4


def member(number: int, role: Role) -> Member:
    return Member(User(number, f"usr_{number}", f"{number}@b.example", "N", None), role, 0)


@dataclass
class Organisation:
    """Members by number, changed as the rules let them be."""

    roles: dict[int, Role] = field(default_factory=lambda: {0: "owner"})

    def actor(self, number: int | None) -> ActingMember | None:
        return None if number is None else ActingMember(number, self.roles[number])

    def change(self, by: int | None, target: int, role: Role | None) -> None:
        """Let `by`, or the operator, change a member, or with None remove it; a stranger is added."""
        if target not in self.roles:
            if role is not None:
                check_grant(self.actor(by), role)
                self.roles[target] = role
            return
        owners = [*self.roles.values()].count("owner")
        check_change(self.actor(by), member(target, self.roles[target]), role, owners)
        if role is None:
            del self.roles[target]
        else:
            self.roles[target] = role


@given(
    st.lists(
        st.tuples(st.none() | st.integers(0, PEOPLE - 1), st.integers(0, PEOPLE - 1), st.none() | ANY_ROLE),
        max_size=40,
    )
)
def test_organisation_keeps_an_owner_and_only_owners_end_an_owners_role(
    steps: list[tuple[int | None, int, Role | None]],
) -> None:
    organisation = Organisation()
    for by, target, role in steps:
        if by is not None and by not in organisation.roles:
            continue
        before = dict(organisation.roles)
        try:
            organisation.change(by, target, role)
        except DomainError:
            assert organisation.roles == before
            continue
        after = organisation.roles
        assert "owner" in after.values()
        if by is None or after == before:
            continue
        lost = [each for each, held in before.items() if held == "owner" and after.get(each) != "owner"]
        assert lost in ([], [by])
        gained = [each for each, held in after.items() if held == "owner" and before.get(each) != "owner"]
        assert not gained or before[by] == "owner"
        assert before[by] in ("owner", "admin") or (role is None and target == by)


def test_the_operator_may_do_everything_but_leave_an_organisation_without_an_owner() -> None:
    check_change(None, member(1, "owner"), "viewer", owners=2)
    with pytest.raises(Conflict, match="last owner"):
        check_change(None, member(1, "owner"), None, owners=1)


def test_a_viewer_may_leave_and_do_nothing_else() -> None:
    viewer = ActingMember(1, "viewer")
    check_change(viewer, member(1, "viewer"), None, owners=1)
    with pytest.raises(Forbidden, match=r"members\.manage"):
        check_change(viewer, member(1, "viewer"), "viewer", owners=1)
    with pytest.raises(Forbidden, match=r"members\.manage"):
        check_change(viewer, member(2, "agent"), None, owners=1)
