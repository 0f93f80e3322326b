"""The widget: its loader for hosts' pages, the panel in a frame, a demo page, and the files that they are made of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from msgspec import Struct
from pydantic import Field
from werkzeug.http import parse_accept_header

from deskwire.engine.channels.channel import Channel, Position
from deskwire.engine.channels.origin import parse_origin
from deskwire.engine.core.errors import NotFound
from deskwire.engine.core.ids import is_id
from deskwire.http.api.calls import Answer, BytesAnswer, Call, Streamed
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.output.static import FileTree, Static, chunks
from deskwire.http.api.routing import OPEN, Media, Routes, Tag
from deskwire.http.pages.widget_look import (
    COLOUR_PATTERN,
    PANEL_DARK,
    PANEL_LIGHT,
    choose_language,
    direction,
    readable,
    shipped_language,
    text_colour,
)

routes = Routes(
    Tag(
        "Widget", "The chat for customers: a script for hosts' pages, the panel in a frame, and their files."
    ),
    OPEN,
    prefix="",
)
_SCRIPT: Final = "text/javascript; charset=utf-8"
_HTML: Final = "text/html; charset=utf-8"
_LOADER: Final = ".js"
# Pages of all sites may load these. They contain nothing of a customer.
_PUBLIC: Final = {"Cross-Origin-Resource-Policy": "cross-origin", "Access-Control-Allow-Origin": "*"}
_CHECKED: Final = {**_PUBLIC, "Cache-Control": "no-cache"}
_KEPT: Final = {**_PUBLIC, "Cache-Control": "public, max-age=31536000, immutable"}
# The panel may load and call this service only, and can't turn text into markup (CSP 3, Trusted Types).
_PANEL_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'; "
    "frame-ancestors 'self'"
)
# A notice has no script and no data, so any page may show it.
_NOTICE_POLICY: Final = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors *"
# As strict as the policy of a careful host.
_DEMO_POLICY: Final = (
    "default-src 'none'; script-src 'self'; frame-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_VARY: Final = "Accept-Encoding, Accept-Language, Referer, Sec-Fetch-Dest, Sec-Fetch-Site"
_DETAILS: Final[Mapping[str, str]] = {
    "channel_not_found": "For the developers of this site: this service has no channel {id}.",
    "channel_disabled": "For the developers of this site: the channel {id} is disabled in its settings.",
    "origin_not_allowed": "For the developers of this site: add {origin} to the origins of the channel {id}.",
}
_INDENTED: Final = re.compile(r"\n\s*")
_MARK: Final = re.compile(
    r"\b(?:LANGUAGE|DIRECTION|SETTINGS|TITLE|DETAIL|FILES|FOLDER|PRELOADS|LOADER|LINES|NAME|STATE|CSP)\b"
)
_MOVED: Final = Media("", statuses=(), bare=(302,))


class LookQuery(Query):
    """The language of the widget, and a look to try out in place of the channel's."""

    lenient = True

    lang: Annotated[str, Field(max_length=35, examples=["de"])] | None = None
    colour: Annotated[str, Field(pattern=COLOUR_PATTERN, examples=["#1f5eff"])] | None = None
    position: Position | None = None


class _View(Struct, frozen=True):
    """A channel as one customer sees it.

    Args:
        query: the wishes of the host's page, for the panel's address.
    """

    channel: Channel
    language: str
    colour: str
    side: str
    query: str

    @property
    def texts(self) -> Mapping[str, str]:
        return self.channel.look.texts.get(self.language, {})


@routes.add(
    "GET",
    "/widget/<channel_id>",
    operation_id="widget",
    query=LookQuery,
    answer=Media("*/*", statuses=(200, 404), bare=(304,), sized=True),
)
async def widget(call: Call[Body, LookQuery]) -> Answer:
    """Show the panel of a channel, or with `.js` after its id, fetch the script that puts it on a page."""
    name = call.path["channel_id"]
    channel = await _channel(call, name.removesuffix(_LOADER))
    if name.endswith(_LOADER):
        if channel is None:
            raise NotFound("There is no channel of this id.", code="channel_not_found")
        return await _loader(call, _view(call, channel))
    return await _panel(call, channel)


@routes.add(
    "GET",
    "/widget/<channel_id>/demo",
    operation_id="widgetDemo",
    query=LookQuery,
    answer=Media("text/html", statuses=(200, 404), bare=(304,), sized=True),
)
async def widget_demo(call: Call[Body, LookQuery]) -> Answer:
    """Show a page with the chat of a channel, and the two lines that put it on another page."""
    channel = await _channel(call, call.path["channel_id"])
    if channel is None:
        return await _notice(call, "channel_not_found", up="../")
    tree = await call.services.desk.widget_tree()
    view = _view(call, channel)
    loader = f"../{channel.id}{_LOADER}"
    policy = "A site with a Content-Security-Policy needs this service in script-src and frame-src."
    state = (
        "The channel is enabled." if channel.enabled else "The channel is disabled, so there is no button."
    )
    lines = (
        "<script>window.Deskwire = window.Deskwire || []</script>\n"
        f'<script async src="{_origin(call)}/widget/{channel.id}{_LOADER}"></script>'
    )
    marks = {
        "FILES": f"../files/{tree.name}",
        "LOADER": f"{loader}?{view.query}" if view.query else loader,
        "NAME": channel.name,
        "STATE": state,
        "LINES": lines,
        "CSP": policy,
    }
    page = _filled(tree.files["widget/demo.html"], marks)
    return _sent(call, page, {**_CHECKED, "Content-Security-Policy": _DEMO_POLICY})


@routes.add(
    "GET",
    "/widget/host.js",
    operation_id="widgetHost",
    answer=_MOVED,
)
async def widget_host(call: Call[Body, Query]) -> Answer:
    """Fetch the second part of the loader. Its address stays the same, so pages that are open during an upgrade find it."""
    return await _current(call, "widget/host.js")


@routes.add(
    "GET",
    "/widget/customer.js",
    operation_id="widgetCustomer",
    answer=_MOVED,
)
async def widget_customer(call: Call[Body, Query]) -> Answer:
    """Fetch the module for a user interface of one's own, of the current version."""
    return await _current(call, "widget/customer.js")


@routes.add(
    "GET",
    "/widget/files/<tree>/<path:file>",
    operation_id="widgetFile",
    answer=Media("*/*", bare=(304,), sized=True),
    errors=("not_found",),
)
async def widget_file(call: Call[Body, Query]) -> Answer:
    """Fetch a file of the widget. The version is a digest of all of its files, so what is there never changes."""
    tree = await call.services.desk.widget_tree()
    kept = call.services.desk.kept
    static = tree.files.get(call.path["file"])
    if static is None or static.content_type == _HTML or (kept and call.path["tree"] != tree.name):
        raise NotFound("The widget has no such file in this version.")
    return _sent(call, static, _KEPT if kept else _CHECKED)


async def _channel(call: Call[Body, Any], channel_id: str) -> Channel | None:
    """Return the channel, None if there is none of this id."""
    try:
        return (await call.services.channels.find(channel_id))[1]
    except NotFound:
        return None


async def _loader(call: Call[Body, LookQuery], view: _View) -> Answer:
    """Return the loader with the settings of the channel."""
    tree = await call.services.desk.widget_tree()
    source = tree.files["widget/loader.js"]
    language = shipped_language(view.language)
    settings = {
        "id": view.channel.id,
        "enabled": view.channel.enabled,
        "colour": view.colour,
        "ink": text_colour(view.colour),
        "side": view.side,
        "query": view.query,
        "open": view.texts.get("title") or shipped_text(tree, language, "open"),
    }
    script = Static.of(_SCRIPT, loader_script(source, settings))
    return _sent(call, script, {**_CHECKED, "Vary": _VARY})


def loader_script(source: Static, settings: Mapping[str, Any]) -> bytes:
    """Return the loader with its settings, without the whitespace at the beginning of lines."""
    written = json.dumps(settings, ensure_ascii=False, separators=(",", ":"))
    return _INDENTED.sub("\n", source.body.decode()).replace('("SETTINGS")', written, 1).encode()


async def _panel(call: Call[Body, LookQuery], channel: Channel | None) -> Answer:
    """Return the panel, or a notice with the reason why it is not there."""
    if channel is None:
        return await _notice(call, "channel_not_found")
    if not channel.enabled:
        return await _notice(call, "channel_disabled", channel)
    if (refused := _refused_origin(call, channel)) is not None:
        return await _notice(call, "origin_not_allowed", channel, refused)
    tree, view = await call.services.desk.widget_tree(), _view(call, channel)
    language = shipped_language(view.language)
    settings = {
        "channel": channel.id,
        "language": view.language,
        "texts": language,
        "file": f"files/{tree.name}/widget/texts/{language}.js",
        "colours": {
            "accent": view.colour,
            "ink": text_colour(view.colour),
            "link-light": readable(view.colour, PANEL_LIGHT),
            "link-dark": readable(view.colour, PANEL_DARK),
        },
        "own": dict(view.texts),
        "name": channel.name,
    }
    built = "built/" if call.services.desk.kept else ""
    marks = {
        **_language_marks(view.language),
        "SETTINGS": json.dumps(settings, ensure_ascii=False),
        "TITLE": view.texts.get("title") or channel.name,
        "FILES": f"files/{tree.name}",
        "FOLDER": f"widget/{built}".rstrip("/"),
    }
    preloads = "\n".join(
        f'<link rel="modulepreload" href="files/{tree.name}/{escape(each)}">'
        for each in (*tree.imports(f"widget/{built}panel.js"), f"widget/texts/{language}.js")
    )
    page = _filled(tree.files["widget/panel.html"], marks, preloads)
    policy = " ".join((_PANEL_POLICY, *channel.frame_sources))
    return _sent(call, page, {**_CHECKED, "Content-Security-Policy": policy, "Vary": _VARY})


def _refused_origin(call: Call[Body, Any], channel: Channel) -> str | None:
    """Return the origin of the host's page if the channel does not allow it.

    The policy of the panel would refuse that page too, but with a browser's error in place of the reason. The
    loader makes browsers send the origin as `Referer`. Without it the policy decides.
    """
    headers = call.incoming.headers
    if headers.get("sec-fetch-dest") != "iframe" or headers.get("sec-fetch-site") == "same-origin":
        return None
    parts = (headers.get("referer") or "").split("/")
    origin = parse_origin("/".join(parts[:3]))
    return None if origin is None or channel.allows_origin(origin.text) else origin.text


async def _notice(
    call: Call[Body, LookQuery], code: str, channel: Channel | None = None, origin: str = "", up: str = ""
) -> Answer:
    """Return a page with a sentence for the customer and one for the host's developers."""
    tree, named = await call.services.desk.widget_tree(), call.path["channel_id"]
    offered = channel.look.texts if channel is not None else ()
    language = shipped_language(choose_language(offered, *_wishes(call)))
    marks = {
        **_language_marks(language),
        "TITLE": shipped_text(tree, language, code),
        # Any other text could be a message of the address's author.
        "DETAIL": _DETAILS[code].format(id=named if is_id(named, "chn") else "of this id", origin=origin),
        "FILES": f"{up}files/{tree.name}",
    }
    page = _filled(tree.files["widget/notice.html"], marks)
    headers = {
        **_PUBLIC,
        "Cache-Control": "no-store",
        "Content-Security-Policy": _NOTICE_POLICY,
        "Vary": _VARY,
    }
    return BytesAnswer(page.body, page.content_type, headers, 404 if channel is None else 200)


def _wishes(call: Call[Body, LookQuery]) -> tuple[str | None, str | None]:
    """Return the language that the host's page asks for, and those that the browser accepts."""
    return call.query.lang, call.incoming.headers.get("accept-language")


def _view(call: Call[Body, LookQuery], channel: Channel) -> _View:
    """Return the channel in the customer's language, and with the look that the query tries out."""
    look, query = channel.look, call.query
    language = choose_language(look.texts, *_wishes(call))
    tried = {"colour": query.colour, "position": query.position}
    wishes = {"lang": language, **{name: value for name, value in tried.items() if value is not None}}
    return _View(
        channel, language, query.colour or look.colour, query.position or look.position, urlencode(wishes)
    )


def shipped_text(tree: FileTree, language: str, name: str) -> str:
    """Return a plain text of the panel in a shipped language, from the file of its texts."""
    source = tree.files[f"widget/texts/{language}.js"].body.decode()
    found = re.search(rf'^ +{name}: "(.*)",$', source, re.MULTILINE)
    assert found is not None, f"{language}: {name}"
    return found[1]


def _language_marks(language: str) -> dict[str, str]:
    return {"LANGUAGE": language, "DIRECTION": direction(language)}


def _filled(page: Static, marks: Mapping[str, str], markup: str = "") -> Static:
    """Return a page with these texts, escaped, in place of its marks; `markup` takes the place of `PRELOADS`."""
    texts = {name: escape(text) for name, text in marks.items()} | {"PRELOADS": markup}
    return Static.of(_HTML, _MARK.sub(lambda mark: texts[mark[0]], page.body.decode()).encode())


def _origin(call: Call[Body, Any]) -> str:
    """Return the address of this service as the browser knows it."""
    scheme = "https" if call.incoming.secure else "http"
    return (call.services.sessions.public_url or f"{scheme}://{call.incoming.headers.get('host')}").rstrip(
        "/"
    )


async def _current(call: Call[Body, Any], name: str) -> Answer:
    """Redirect to the current version of a file."""
    tree = await call.services.desk.widget_tree()
    return BytesAnswer(b"", "", {**_CHECKED, "Location": f"files/{tree.name}/{name}"}, 302)


def _sent(call: Call[Body, Any], static: Static, headers: Mapping[str, str]) -> Answer:
    """Return the file, compressed if the client accepts that.

    304 if the client has the content already.
    """
    request = call.incoming.headers
    own = {"Vary": "Accept-Encoding", **headers, "ETag": f'W/"{static.tag}"'}
    if static.known_to(request.get("if-none-match")):
        return BytesAnswer(b"", static.content_type, own, 304)
    if parse_accept_header(request.get("accept-encoding"))["gzip"] > 0:
        return _whole(static.packed, static.content_type, {**own, "Content-Encoding": "gzip"})
    return _whole(static.body, static.content_type, own)


def _whole(shared: bytes, content_type: str, headers: Mapping[str, str]) -> Streamed:
    return Streamed(chunks(shared), content_type, {**headers, "Content-Length": str(len(shared))})
