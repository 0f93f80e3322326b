"""The description of this API, and a page to explore it and try it out."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

from werkzeug.http import parse_accept_header

from deskwire.engine.core.errors import NotFound
from deskwire.http.api.calls import Answer, BytesAnswer, Call, Streamed
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.output.static import Lazy, Static, chunks
from deskwire.http.api.routing import BASE, OPEN, Media, Routes, Tag
from deskwire.http.pages.errors import POLICY

routes = Routes(
    Tag("API description", "The description of this API, and a page to explore it and try it out."),
    OPEN,
    prefix="",
)
_JSON: Final = "application/json"
_HTML: Final = "text/html; charset=utf-8"
_SCRIPT: Final = "text/javascript; charset=utf-8"
_STYLE: Final = "text/css; charset=utf-8"
_PAGE: Final = "explorer.html"
_ASSETS: Final[Mapping[str, str]] = {
    "explorer.js": _SCRIPT,
    "swagger-ui-bundle.js": _SCRIPT,
    "swagger-ui.css": _STYLE,
}
# The page may load and call this service only (CSP 3).
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_CHECKED: Final = {"Cache-Control": "no-cache"}
# Headers of a file whose name contains a digest of its content.
_KEPT: Final = {"Cache-Control": "public, max-age=31536000, immutable"}


@routes.add(
    "GET",
    f"{BASE}/openapi.json",
    operation_id="openapiDocument",
    answer=Media(_JSON, bare=(304,), sized=True),
)
async def openapi_document(call: Call[Body, Query]) -> Answer:
    """Fetch this document, the description of the whole API in OpenAPI 3.1."""
    document = await call.services.description.get()
    return _page(call, document, _CHECKED)


@routes.add(
    "GET",
    f"{BASE}/asyncapi.json",
    operation_id="asyncapiDocument",
    answer=Media(_JSON, bare=(304,), sized=True),
)
async def asyncapi_document(call: Call[Body, Query]) -> Answer:
    """Fetch the description of the events in AsyncAPI 3.0: webhooks, the realtime stream and the agents' stream."""
    document = await call.services.event_description.get()
    return _page(call, document, _CHECKED)


@routes.add("GET", "/docs", operation_id="explorer", answer=Media("text/html", bare=(304,), sized=True))
async def explorer(call: Call[Body, Query]) -> Answer:
    """Show the page to explore the API with. It loads nothing from other hosts."""
    page = (await _explorer.get())[_PAGE]
    return _page(call, page, {**_CHECKED, "Content-Security-Policy": _POLICY})


@routes.add(
    "GET", "/docs/errors", operation_id="errorPage", answer=Media("text/html", bare=(304,), sized=True)
)
async def errors(call: Call[Body, Query]) -> Answer:
    """Show what each error code means. The `type` of a problem document leads to the entry of its code."""
    page = await call.services.error_page.get()
    return _page(call, page, {**_CHECKED, "Content-Security-Policy": POLICY})


@routes.add(
    "GET",
    "/docs/<asset>",
    operation_id="explorerAsset",
    answer=Media("*/*", bare=(304,), sized=True),
    errors=("not_found",),
)
async def explorer_asset(call: Call[Body, Query]) -> Answer:
    """Fetch a file of the explorer page. Its name has a digest of its content, so it never changes."""
    asset = (await _explorer.get()).get(call.path["asset"])
    if asset is None or asset.content_type == _HTML:
        raise NotFound("The explorer has no such file.")
    return _page(call, asset, _KEPT)


def _page(call: Call[Body, Query], static: Static, headers: Mapping[str, str]) -> Answer:
    """Return the document, compressed if the client accepts that.

    304 if the client has the content already.
    """
    request = call.incoming.headers
    all_headers = {"ETag": f'W/"{static.tag}"', "Vary": "Accept-Encoding", **headers}
    if static.known_to(request.get("if-none-match")):
        return BytesAnswer(b"", static.content_type, all_headers, 304)
    if parse_accept_header(request.get("accept-encoding"))["gzip"] > 0:
        return _sent(static.packed, static.content_type, {**all_headers, "Content-Encoding": "gzip"})
    return _sent(static.body, static.content_type, all_headers)


def _sent(shared: bytes, content_type: str, headers: Mapping[str, str]) -> Streamed:
    return Streamed(chunks(shared), content_type, {**headers, "Content-Length": str(len(shared))})


def _loaded() -> Mapping[str, Static]:
    """Return the page and its files, by names that contain a digest of their content."""
    folder: Any = files("deskwire.http.pages") / "assets"
    loaded: dict[str, Static] = {}
    page: str = (folder / _PAGE).read_text("utf-8")
    for name, content_type in _ASSETS.items():
        packed = folder / f"{name}.gz"
        if packed.is_file():
            static = Static.of_packed(content_type, packed.read_bytes())
        else:
            static = Static.of(content_type, (folder / name).read_bytes())
        stem, _, ending = name.rpartition(".")
        named = f"{stem}.{static.tag}.{ending}"
        loaded[named] = static
        page = page.replace(f"docs/{name}", f"docs/{named}")
    loaded[_PAGE] = Static.of(_HTML, page.encode())
    return MappingProxyType(loaded)


_explorer: Final = Lazy(_loaded)
