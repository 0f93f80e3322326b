"""The protection of owners: an organisation keeps one, and no other role can take an owner's role away."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.accounts.people import (
    PERMISSIONS,
    ROLES,
    BuiltInRole,
    GrantedRole,
    Member,
    User,
    built_in_role,
)
from deskwire.engine.accounts.roles import ActingMember, check_change, check_grant, check_reach
from deskwire.engine.core.errors import Conflict, DomainError, Forbidden
from deskwire.engine.core.values import replace

ANY_ROLE = st.sampled_from(ROLES)
PEOPLE = 4


def member(number: int, role: BuiltInRole) -> Member:
    user = User(number, f"usr_{number}", f"{number}@b.example", "N", None)
    return Member(user, role, 0, PERMISSIONS[role])


def acting(number: int, role: BuiltInRole) -> ActingMember:
    return ActingMember(number, role, PERMISSIONS[role])


@dataclass
class Organisation:
    """Members by number, changed as the rules let them be."""

    roles: dict[int, BuiltInRole] = field(default_factory=lambda: {0: "owner"})

    def actor(self, number: int | None) -> ActingMember | None:
        return None if number is None else acting(number, self.roles[number])

    def change(self, by: int | None, target: int, role: BuiltInRole | None) -> None:
        """Let `by`, or the operator, change a member, or with None remove it; a stranger is added."""
        if target not in self.roles:
            if role is not None:
                check_grant(self.actor(by), built_in_role(role))
                self.roles[target] = role
            return
        owners = [*self.roles.values()].count("owner")
        granted = None if role is None else built_in_role(role)
        check_change(self.actor(by), member(target, self.roles[target]), granted, owners)
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
    steps: list[tuple[int | None, int, BuiltInRole | None]],
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
    check_change(None, member(1, "owner"), built_in_role("viewer"), owners=2)
    with pytest.raises(Conflict, match="last owner"):
        check_change(None, member(1, "owner"), None, owners=1)


def test_a_viewer_may_leave_and_do_nothing_else() -> None:
    viewer = acting(1, "viewer")
    check_change(viewer, member(1, "viewer"), None, owners=1)
    with pytest.raises(Forbidden, match=r"members\.manage"):
        check_change(viewer, member(1, "viewer"), built_in_role("viewer"), owners=1)
    with pytest.raises(Forbidden, match=r"members\.manage"):
        check_change(viewer, member(2, "agent"), None, owners=1)


MANAGER = ActingMember(1, "rol_1", frozenset({"members.manage", "conversations.read"}))


def test_a_member_gives_only_roles_whose_permissions_it_holds() -> None:
    check_grant(MANAGER, GrantedRole("rol_2", frozenset({"conversations.read"})))
    with pytest.raises(Forbidden, match=r"tickets\.read") as refused:
        check_grant(MANAGER, built_in_role("viewer"))
    assert refused.value.reason == "permission_not_held"
    with pytest.raises(Forbidden, match="Only an owner"):
        check_grant(MANAGER, GrantedRole("owner", frozenset()))


@pytest.mark.parametrize("role", [None, GrantedRole("rol_2", frozenset({"conversations.read"}))])
def test_members_with_permissions_that_the_actor_lacks_are_out_of_reach(role: GrantedRole | None) -> None:
    with pytest.raises(Forbidden) as refused:
        check_change(MANAGER, member(2, "agent"), role, owners=1)
    assert refused.value.reason == "permission_not_held"
    with pytest.raises(Forbidden) as refused:
        check_reach(MANAGER, member(2, "agent"), "give an owner a new password")
    assert refused.value.reason == "permission_not_held"
    check_reach(None, member(2, "owner"), "give an owner a new password")
    check_reach(MANAGER, replace(member(2, "agent"), permissions=frozenset({"conversations.read"})), "act")


def test_nobody_widens_its_own_role() -> None:
    oneself = replace(member(1, "viewer"), role="rol_1", permissions=MANAGER.permissions)
    with pytest.raises(Forbidden) as refused:
        check_change(MANAGER, oneself, built_in_role("admin"), owners=1)
    assert refused.value.reason == "permission_not_held"
    check_change(MANAGER, oneself, GrantedRole("rol_2", frozenset()), owners=1)
