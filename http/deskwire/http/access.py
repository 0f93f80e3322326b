"""Who calls: credentials from the headers, checked against what the route asks for (decisions 2, 3)."""

from __future__ import annotations

from typing import Final

import structlog
from werkzeug.datastructures import Headers

from deskwire.engine.credentials import authenticate_key, role_in
from deskwire.engine.errors import BadRequest, Forbidden, NotFound, Unauthenticated, Unavailable
from deskwire.engine.ids import is_id
from deskwire.engine.people import PERMISSIONS, Project, ServerKey, User
from deskwire.engine.ports import Reader
from deskwire.http.routing import Access, Caller
from deskwire.http.scraper import Scraping
from deskwire.http.services import Services

log: Final = structlog.get_logger(__name__)

_TOUCH_MS: Final = 60_000
"""How old the noted time of a key's last use may be; it saves a write on every call."""


async def admit(services: Services, access: Access, headers: Headers, peer: str | None) -> Caller:
    """The caller, if the route is open to it.

    Args:
        peer: address of the connection's other end.

    Raises:
        Unauthenticated: no valid credential of the right kind.
        BadRequest: no `project` header where one is needed (`missing_project`).
        NotFound: a project that does not exist, or of an organisation the user is no member of.
        Forbidden: the user's role lacks the permission, or a scraper is not local.
    """
    if access.kind == "none":
        return Caller()
    if access.kind == "metrics":
        _admit_scraper(services.scraping, headers, peer)
        return Caller()
    credential = _bearer(headers)
    if access.kind == "server_key":
        key = services.store.peek(lambda reader: authenticate_key(reader, credential))
        await _note_use(services, key)
        return Caller(project=key.project)
    user_id = services.tokens.subject(credential)
    user = services.store.peek(lambda reader: reader.user(user_id))
    if user is None:
        raise Unauthenticated("The access token's user does not exist.", code="invalid_token")
    project_id = headers.get("project")
    if not project_id:
        raise BadRequest("This call needs the header `project`.", code="missing_project")
    return _in_project(services, access, user, project_id)


def _admit_scraper(scraping: Scraping, headers: Headers, peer: str | None) -> None:
    if scraping.token is None:
        scraping.check_local(peer, headers)
    else:
        scraping.check_token(_bearer(headers))


def _bearer(headers: Headers) -> str:
    header = headers.get("authorization")
    if header is None:
        raise Unauthenticated(
            "This call needs the header `Authorization: Bearer …`.", code="missing_credential"
        )
    scheme, _, credential = header.partition(" ")
    if scheme.lower() != "bearer" or not credential.strip():
        raise Unauthenticated("The header `Authorization` must read `Bearer …`.", code="bad_credential")
    return credential.strip()


def _in_project(services: Services, access: Access, user: User, project_id: str) -> Caller:
    def find(reader: Reader) -> tuple[Project, frozenset[str]] | None:
        project = reader.project(project_id) if is_id(project_id, "prj") else None
        role = project and role_in(reader, project, user)
        return (project, PERMISSIONS[role]) if project and role else None

    found = services.store.peek(find)
    if found is None:
        raise NotFound("There is no such project.", code="project_not_found")
    project, permissions = found
    if access.permission is not None and access.permission not in permissions:
        raise Forbidden(f"This needs the permission {access.permission}.")
    return Caller(project, user)


async def _note_use(services: Services, key: ServerKey) -> None:
    """Record when the key was last used, at most once a minute; a full disk does not stop a read."""
    now = services.clock()
    if now - max(services.key_uses.get(key.rowid, 0), key.last_used_at or 0) < _TOUCH_MS:
        return
    services.key_uses[key.rowid] = now
    try:
        await services.store.write(lambda tx: tx.touch_key(key.rowid, now))
    except Unavailable as error:
        log.warning("server_key.use_not_noted", reason=error.reason)
