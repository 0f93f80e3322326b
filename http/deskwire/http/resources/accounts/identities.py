"""The identities of the signed-in user at OpenID providers: listed and unlinked."""

from __future__ import annotations

from typing import Final

from deskwire.engine.accounts.identity.oidc.identities import identity_view, unlink
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import SIGNED_IN, Routes, fresh
from deskwire.http.resources.accounts import users
from deskwire.http.schemas import people as shapes
from deskwire.http.schemas.base import Deleted

routes = Routes(users.routes.tag, SIGNED_IN)

_ALL: Final = "/users/me/identities"


@routes.add("GET", _ALL, operation_id="listIdentities", answer=shapes.Identities)
async def list_identities(call: Call[Body, Query]) -> Answer:
    """List the identities of the signed-in user at identity providers, oldest first."""
    user = call.user.rowid
    found = await call.services.store.read(lambda reader: reader.identities_of(user))
    return {"items": [identity_view(each) for each in found]}


@routes.add(
    "DELETE",
    f"{_ALL}/<identity_id>",
    fresh(SIGNED_IN),
    operation_id="unlinkIdentity",
    answer=Deleted,
    records=("identity.unlinked",),
)
async def unlink_identity(call: Call[Body, Query]) -> Answer:
    """Delete the binding of the account to a user of an identity provider. Sessions stay.

    The provider's user can sign in again by an address that the provider has verified.
    """
    identity_id, user = call.path["identity_id"], call.user.rowid
    await call.services.store.write(lambda tx: unlink(tx, user, identity_id))
    return {"id": identity_id, "deleted": True}
