"""The signed-in user: name, password, permissions (contract 4.8)."""

from __future__ import annotations

from deskwire.engine.accounts.members import delete_user, user_view
from deskwire.engine.accounts.people import User
from deskwire.engine.accounts.ports import OrganisationTransaction
from deskwire.engine.accounts.roles import RoleScope, role_at
from deskwire.engine.core.errors import Forbidden, Unauthenticated
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.values import replace
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import SIGNED_IN, Routes, Tag, fresh
from deskwire.http.resources.accounts.codes import require_code
from deskwire.http.resources.accounts.requests import GivenCode, GivenPassword, NewPassword, RenameRequest
from deskwire.http.resources.accounts.sessions import ProvedSignIn, begin, with_cookie
from deskwire.http.resources.accounts.tokens import change_password, check_password, token_for
from deskwire.http.schemas import people as shapes
from deskwire.http.schemas.base import Deleted

routes = Routes(Tag("Signed-in user", "The name, password and permissions of the signed-in user."), SIGNED_IN)


class SetPasswordRequest(Body):
    """The current password and the new one.

    A call with an access token of a user with a second factor also gives a `code` of the authenticator app, or a `recoveryCode`.
    """

    password: GivenPassword
    new_password: NewPassword
    code: GivenCode | None = None
    recovery_code: GivenCode | None = None


class PermissionQuery(Query):
    """The organisation to list the permissions in."""

    organisation_id: str | None = None


@routes.add("GET", "/users/me", operation_id="getMe", answer=shapes.User)
async def get_me(call: Call[Body, Query]) -> Answer:
    """Fetch the signed-in user."""
    return user_view(call.user)


@routes.add(
    "PATCH",
    "/users/me",
    operation_id="changeMe",
    body=RenameRequest,
    answer=shapes.User,
    records=("account.changed",),
)
async def change_me(call: Call[RenameRequest, Query]) -> Answer:
    """Change the signed-in user's name."""

    def rename(tx: OrganisationTransaction) -> User:
        user = replace(_me(tx, call.user.id), name=call.body.name)
        tx.save_user(user)
        return user

    return user_view(await call.services.store.write(rename))


@routes.add(
    "DELETE",
    "/users/me",
    fresh(SIGNED_IN),
    operation_id="deleteMe",
    answer=Deleted,
    errors=("last_owner",),
    records=("member.removed", "account.deleted"),
)
async def delete_me(call: Call[Body, Query]) -> Answer:
    """Delete the signed-in user's account permanently, with all memberships and access tokens.

    Messages of the user remain, with the user's name at that time. The account of the last owner of an
    organisation can't be deleted: 409 `last_owner`.
    """
    now = call.services.clock()
    await call.services.store.write(lambda tx: delete_user(tx, _me(tx, call.user.id), now))
    return {"id": call.user.id, "deleted": True}


@routes.add(
    "POST",
    "/users/me/password",
    fresh(SIGNED_IN),
    operation_id="setPassword",
    body=SetPasswordRequest,
    answer=shapes.AccessToken,
    errors=(
        "invalid_code",
        "invalid_login",
        "password_changed",
        "second_factor_required",
        "sign_in_busy",
        "sign_in_disabled",
        "too_many_sign_ins",
    ),
    records=(
        "account.password_changed",
        "account.recovery_code_used",
        "account.sessions_ended",
        "sign_in.failed",
        "sign_in.new_device",
    ),
)
async def set_password(call: Call[SetPasswordRequest, Query]) -> Answer:
    """Change the password. All earlier access tokens are revoked and all sessions end; the response has a new token.

    If a session made the call, the response also sets a new session's cookie. With an access token, a user with a second
    factor also needs a code: 401 `second_factor_required`.
    """
    services, body = call.services, call.body
    if not services.sign_in:
        raise Forbidden(
            "Users of this installation sign in with an identity provider.", code="sign_in_disabled"
        )
    user = await check_password(call, call.user.email, call.user, body.password)
    if call.access.session is None:  # a session has proved the factor within the last 15 minutes
        await require_code(call, user, body.code, body.recovery_code)
    user = await change_password(services, user, body.password, body.new_password)
    answer = await token_for(call, user, "password_change")
    session = call.access.session
    if session is None:
        return answer
    # The new session keeps the way of the sign-in: the password alone proves no second factor.
    way = ProvedSignIn(
        session.method,
        session.second_factor,
        session.provider,
        session.provider_sid,
        vouched=session.vouched,
    )
    return with_cookie(call, answer, await begin(call, user, sign_in=way))


@routes.add(
    "GET",
    "/users/me/permissions",
    replace(SIGNED_IN, machines=True),
    operation_id="getPermissions",
    query=PermissionQuery,
    answer=shapes.UserPermissions,
    errors=("organisation_not_found", "project_not_found", "role_not_found"),
)
async def get_permissions(call: Call[Body, PermissionQuery]) -> Answer:
    """List the user's permissions and roles in one organisation.

    The organisation is `organisationId`, else that of the project in the header `project`, else
    the one that the user joined first. For a machine credential, the response has its own permissions and no roles.
    """
    if call.access.machine is not None:
        return {"permissions": sorted(call.access.permissions), "roles": []}
    scope = RoleScope(call.query.organisation_id, call.access.named_project)
    role = await call.services.store.read(InlineQuery(lambda reader: role_at(reader, call.user, scope)))
    return {"permissions": sorted(role.permissions), "roles": [role.id]}


def _me(tx: OrganisationTransaction, user_id: str) -> User:
    """Return the signed-in user as stored. Raises Unauthenticated if the account was deleted."""
    user = tx.user(user_id)
    if user is None:
        raise Unauthenticated("The access token's user does not exist.", code="invalid_token")
    return user
