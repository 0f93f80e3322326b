"""The desk: the page that agents work in, and the files that it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from werkzeug.datastructures import LanguageAccept
from werkzeug.http import parse_accept_header

from deskwire.engine.core.errors import NotFound
from deskwire.http.api.auth.sessions import cookie_contents
from deskwire.http.api.calls import Answer, BytesAnswer, Call, Streamed
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.output.static import ENGLISH, INDEX_FILE, FileTree, Static, chunks
from deskwire.http.api.routing import OPEN, Media, Routes, Tag

routes = Routes(
    Tag("Desk", "The page that agents work in, and the files that it is made of."),
    OPEN,
    prefix="",
)
# The page may load, frame and call this service only, and can't turn text into markup (CSP 3, Trusted Types).
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types deskwire-worker deskwire-notifications"
)

_PAGE_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
    "Vary": "Accept-Encoding, Accept-Language, Cookie",
}
# A worker has the policy of its own file, not that of the page (CSP 3, section 4.2.3).
_WORKER_POLICY: Final = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)

_KEPT: Final = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Content-Security-Policy": _WORKER_POLICY,
}
_CHECKED: Final = {**_KEPT, "Cache-Control": "no-cache"}
# The service worker's policy: it imports nothing, and shows the desk's icon.
_WORKER_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'none'; img-src 'self'; frame-ancestors 'none'",
}
_NOTIFICATION_WORKER: Final = "shell/notification-worker.js"
LANGUAGE_COOKIE: Final = "deskwire-language"
"""The cookie with the language that the user has chosen in this browser. The page sets it."""

_OFF: Final = "The desk is turned off here, by DESKWIRE_UI."


class DeskQuery(Query):
    """The query of a place in the desk, such as the filters of a list.

    The page reads it, the service does not.
    """

    anything = True


@routes.add(
    "GET",
    "/desk",
    operation_id="desk",
    query=DeskQuery,
    answer=Media("text/html", bare=(304,), sized=True),
    errors=("not_found",),
)
async def desk(call: Call[Body, DeskQuery]) -> Answer:
    """Show the desk, the page that agents work in. It loads nothing from other hosts.

    Its language is the one of the cookie `deskwire-language`, else the first one of `Accept-Language` that the desk has, else English.
    """
    return await _page(call, 0)


@routes.add(
    "GET",
    "/desk/notification-worker.js",
    operation_id="deskNotificationWorker",
    answer=Media("text/javascript", bare=(304,), sized=True),
    errors=("not_found",),
)
async def notification_worker(call: Call[Body, Query]) -> Answer:
    """Fetch the service worker of the desk, which shows notifications. Its address is the same in all versions."""
    return _sent(call, (await _tree(call)).files[_NOTIFICATION_WORKER], _WORKER_HEADERS)


@routes.add(
    "GET",
    "/desk/<path:place>",
    operation_id="deskPlace",
    query=DeskQuery,
    answer=Media("text/html", bare=(304,), sized=True),
    errors=("not_found",),
)
async def desk_place(call: Call[Body, DeskQuery]) -> Answer:
    """Show a place in the desk, such as a conversation: the same page, which finds out by its address."""
    return await _page(call, call.path["place"].count("/") + 1)


@routes.add(
    "GET",
    "/web/<tree>/<path:file>",
    operation_id="deskFile",
    answer=Media("*/*", bare=(304,), sized=True),
    errors=("not_found",),
)
async def desk_file(call: Call[Body, Query]) -> Answer:
    """Fetch a file of the desk. The version is a digest of all of its files, so what is there never changes."""
    current, kept = await _tree(call), call.services.desk.kept
    name, own = call.path["tree"], current.name
    # A folder's files change while the page is open, so their former name stands for the present files.
    tree = current.named(name if kept else own + name[len(own) :])
    static = None if tree is None else tree.files.get(call.path["file"])
    if static is None or call.path["file"] == INDEX_FILE:
        raise NotFound("The desk has no such file in this version.")
    return _sent(call, static, _KEPT if kept else _CHECKED)


async def _tree(call: Call[Body, Any]) -> FileTree:
    """Return the files. Raises NotFound if the desk is disabled."""
    if not call.services.desk.shown:
        raise NotFound(_OFF)
    return await call.services.desk.tree()


async def _page(call: Call[Body, Any], depth: int) -> Answer:
    tree = await _tree(call)
    return _sent(call, tree.in_language(_language(call, tree)).page(depth), _PAGE_HEADERS)


def _language(call: Call[Body, Any], tree: FileTree) -> str:
    """Return the language of the page: the user's choice in this browser, else the best of the browser's own ones."""
    headers = call.incoming.headers
    chosen = cookie_contents(headers, LANGUAGE_COOKIE)
    if known := sorted(chosen & tree.languages.keys()):
        return known[0]
    by_tag = {tag.lower(): tag for tag in tree.languages}
    for tag, quality in parse_accept_header(headers.get("accept-language"), LanguageAccept):
        wanted = tag.lower()
        found = by_tag.get(wanted) or by_tag.get(wanted.partition("-")[0])
        if found is not None and quality > 0:
            return found
    return ENGLISH


def _sent(call: Call[Body, Any], static: Static, headers: Mapping[str, str]) -> Answer:
    """Return the file, compressed if the client accepts that.

    304 if the client has the content already.
    """
    request = call.incoming.headers
    own = {"ETag": f'W/"{static.tag}"', "Vary": "Accept-Encoding", **headers}
    if static.known_to(request.get("if-none-match")):
        return BytesAnswer(b"", static.content_type, own, 304)
    if parse_accept_header(request.get("accept-encoding"))["gzip"] > 0:
        return _whole(static.packed, static.content_type, {**own, "Content-Encoding": "gzip"})
    return _whole(static.body, static.content_type, own)


def _whole(shared: bytes, content_type: str, headers: Mapping[str, str]) -> Streamed:
    return Streamed(chunks(shared), content_type, {**headers, "Content-Length": str(len(shared))})
