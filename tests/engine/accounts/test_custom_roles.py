"""No sequence of calls gives a member a permission that the caller did not have, on real tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskwire.engine.accounts import custom_roles, members
from deskwire.engine.accounts.custom_roles import OrganisationRole
from deskwire.engine.accounts.members import NewAccount
from deskwire.engine.accounts.people import PERMISSIONS
from deskwire.engine.accounts.roles import MANAGE, ActingMember
from deskwire.engine.audit.trail import ChangeOrigin
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.errors import DomainError
from deskwire.storage.sqlite.database import connect_writer, migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.transaction import SqliteTransaction

SOME = (MANAGE, "conversations.read", "tickets.read", "surveys.manage")
PEOPLE = 5
GRANTS = st.frozensets(st.sampled_from(SOME))
ROLE = st.integers(0, 6)
STEPS = st.one_of(
    st.tuples(st.just("create role"), GRANTS),
    st.tuples(st.just("change role"), ROLE, GRANTS),
    st.tuples(st.just("delete role"), ROLE),
    st.tuples(st.just("add member"), st.integers(0, PEOPLE - 1), ROLE),
    st.tuples(st.just("give role"), st.integers(0, PEOPLE - 1), ROLE),
    st.tuples(st.just("remove member"), st.integers(0, PEOPLE - 1)),
    st.tuples(st.just("take over"), st.integers(0, PEOPLE - 1)),
)


@pytest.fixture(scope="module")
def tx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteTransaction]:
    path = tmp_path_factory.mktemp("roles") / FILE_NAME
    migrate(path)
    opened = SqliteTransaction(connect_writer(path))
    yield opened
    opened.conn.close()


@contextmanager
def discarded(tx: SqliteTransaction) -> Iterator[None]:
    """Write in a transaction that is rolled back."""
    tx.conn.execute("BEGIN")
    try:
        with tx.signed(ChangeOrigin(Actor("operator"))):
            yield
    finally:
        tx.conn.execute("ROLLBACK")


class Staff:
    """The members of an organisation, changed by the engine's functions as its routes call them."""

    def __init__(self, tx: SqliteTransaction) -> None:
        self.tx = tx
        self.organisation = tx.insert_organisation("org_1", "Acme", 0)
        self.made = 0
        for number, role in enumerate(("owner", "viewer")):
            self.join(number, role)
        lead = OrganisationRole(0, "rol_lead", self.organisation, "Lead", "", frozenset(SOME[:3]))
        custom_roles.create_role(tx, self.actor(0), lead)
        members.change_role(tx, self.actor(0), self.organisation, "usr_1", "rol_lead")

    def join(self, number: int, role: str) -> None:
        account = NewAccount(f"usr_{number}", f"{number}@example.com", "N", None)
        user = members.make_user(self.tx, account, 0)
        members.join(self.tx, self.organisation, user, role, 0)

    def actor(self, number: int) -> ActingMember:
        user = self.tx.user(f"usr_{number}")
        role = None if user is None else self.tx.role(self.organisation, user.rowid)
        assert user is not None
        assert role is not None
        return ActingMember(user.rowid, role.id, role.permissions)

    def held(self) -> dict[str, frozenset[str]]:
        """Return the permissions of each member."""
        return {each.user.id: each.permissions for each in self.tx.members(self.organisation, 0, 99)}

    def role_id(self, number: int) -> str:
        roles = custom_roles.roles_of(self.tx, self.organisation)
        return roles[number % len(roles)].id

    def run(self, actor: ActingMember, step: tuple[Any, ...]) -> str | None:
        """Run a step; return the id of a member whose account the actor may now use."""
        tx, organisation = self.tx, self.organisation
        match step:
            case ("create role", permissions):
                self.made += 1
                name = f"Role {self.made}"
                role = OrganisationRole(0, f"rol_{self.made}", organisation, name, "", permissions)
                custom_roles.create_role(tx, actor, role)
            case ("change role", role, permissions):
                custom_roles.change_custom_role(
                    tx, actor, organisation, self.role_id(role), permissions=permissions
                )
            case ("delete role", role):
                custom_roles.delete_custom_role(tx, actor, organisation, self.role_id(role))
            case ("add member", number, role):
                account = NewAccount(f"usr_{number}", f"{number}@example.com", "N", None)
                members.add_new_member(tx, actor, organisation, account, self.role_id(role), 0)
            case ("give role", number, role):
                members.change_role(tx, actor, organisation, f"usr_{number}", self.role_id(role))
            case ("remove member", number):
                members.remove_member(tx, actor, organisation, f"usr_{number}")
            case ("take over", number):
                return members.renew_password(tx, actor, organisation, f"usr_{number}", "hash", 0).user.id
            case other:
                raise AssertionError(other)
        return None


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, PEOPLE - 1), STEPS), max_size=30))
def test_no_sequence_of_calls_gives_a_permission_that_its_caller_lacks(
    tx: SqliteTransaction,
    steps: list[tuple[int, tuple[Any, ...]]],
) -> None:
    with discarded(tx):
        staff = Staff(tx)
        for by, step in steps:
            before = staff.held()
            if MANAGE not in before.get(f"usr_{by}", ()) and step[0] != "remove member":
                continue  # the routes of the other steps require it
            if f"usr_{by}" not in before:
                continue
            actor = staff.actor(by)
            try:
                taken = staff.run(actor, step)
            except DomainError:
                assert staff.held() == before
                continue
            after = staff.held()
            for member, permissions in after.items():
                assert permissions - before.get(member, frozenset()) <= actor.permissions
            for member, permissions in before.items():
                if member != f"usr_{by}" and after.get(member) != permissions:
                    assert permissions <= actor.permissions, "a member with more is out of reach"
            if taken is not None:
                assert before[taken] <= actor.permissions
            owners = [each for each in tx.members(staff.organisation, 0, 99) if each.role == "owner"]
            assert owners
            assert all(each.permissions == PERMISSIONS["owner"] for each in owners)
