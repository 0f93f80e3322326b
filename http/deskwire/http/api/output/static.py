"""Files that do not change while the service runs: compressed once, with an ETag.

And the files of the desk and the widget.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

import msgspec
import trio
from msgspec import Struct, field
from werkzeug.http import parse_etags

_TAG_CHARACTERS: Final = 16
T = TypeVar("T")


# Bytes that are sent at a time; a client that does not read causes no more to be buffered.
_PIECE: Final = 64 * 1024


@dataclass(frozen=True)
class Static:
    """A document of some type.

    `packed` is its gzip form, `tag` a digest of its content.
    """

    content_type: str
    packed: bytes
    tag: str

    @classmethod
    def of(cls, content_type: str, body: bytes) -> Static:
        """Return the document with this content."""
        return cls(content_type, gzip.compress(body, mtime=0), sha256(body).hexdigest()[:_TAG_CHARACTERS])

    @classmethod
    def of_packed(cls, content_type: str, packed: bytes) -> Static:
        """Return the document with this gzip form."""
        return cls(content_type, packed, sha256(gzip.decompress(packed)).hexdigest()[:_TAG_CHARACTERS])

    @cached_property
    def body(self) -> bytes:
        """The content, cached for clients that don't accept gzip."""
        return gzip.decompress(self.packed)

    def known_to(self, tags: str | None) -> bool:
        """Return whether a client with these tags has the content.

        `tags` is the value of `If-None-Match` (RFC 9110 section 13.1.2).
        """
        return parse_etags(tags).contains_weak(self.tag)


class Lazy(Generic[T]):
    """A value that is made on first use, in a thread, and cached."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self._making = trio.Lock()

    async def get(self) -> T:
        """Return the value.

        Concurrent callers share one computation.
        """
        if self._made is None:
            async with self._making:  # concurrent first callers share one computation
                if self._made is None:
                    self._made = await trio.to_thread.run_sync(self._make)
        return self._made


class OfFolders(Generic[T]):
    """A value that is made of folders' files in a thread, and made again after one of the files has changed."""

    def __init__(self, make: Callable[[], T], *folders: Path) -> None:
        self._make = make
        self._folders = folders
        self._made: tuple[frozenset[_FileVersion], T] | None = None
        self._making = trio.Lock()

    async def get(self) -> T:
        """Return the value of the files as they are now.

        Concurrent callers share one computation.
        """
        async with self._making:
            return await trio.to_thread.run_sync(self._current)

    def _current(self) -> T:
        versions = frozenset(chain.from_iterable(map(_versions, self._folders)))
        if self._made is None or self._made[0] != versions:
            self._made = versions, self._make()
        return self._made[1]


class _FileVersion(NamedTuple):
    """A file's path and the attributes that change with its content."""

    path: str
    inode: int
    size: int
    modified_ns: int


def _versions(folder: Path) -> Iterator[_FileVersion]:
    languages = folder / _LANGUAGES_FILE
    for path in chain((file for _, file in _served(folder)), [languages] if languages.is_file() else []):
        state = path.stat()
        yield _FileVersion(str(path), state.st_ino, state.st_size, state.st_mtime_ns)


async def chunks(shared: bytes) -> AsyncIterator[bytes]:
    """Yield the bytes in chunks."""
    for begin in range(0, len(shared), _PIECE):
        yield shared[begin : begin + _PIECE]


# The folder's other files, such as licences and type declarations, are not served.
_TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}

INDEX_FILE: Final = "index.html"
_ENTRY: Final = re.compile(r'<script type="module" src="web/([\w./-]+)">')
_IMPORT: Final = re.compile(r'(?:^|;)(?:import|export)\b[^;"(]*?"(\.[\w./-]+)"', re.MULTILINE)
_NAME_CHARACTERS: Final = 16
_DEPTH_MAX: Final = 8


# The language of the modules themselves. The folder of another language has modules that replace them.
ENGLISH: Final = "en"
_LANGUAGES: Final = "languages"
_LANGUAGES_FILE: Final = f"{_LANGUAGES}/languages.json"
_HTML: Final = '<html lang="en">'
_RTL_STYLE: Final = '<link rel="stylesheet" href="web/rtl.css">\n</head>'


class PageLanguage(Struct, frozen=True):
    """A language of the pages: its own name, and the direction of its writing."""

    name: str
    direction: Literal["ltr", "rtl"]


class FileTree(Struct, frozen=True):
    """The files by path in a language, and their common name: a digest of all paths and contents, and the language.

    The language is a part of the files' addresses, so that a module loads the texts of its own language by a path that is
    the same in all of them.
    """

    files: Mapping[str, Static]
    name: str
    languages: Mapping[str, PageLanguage] = MappingProxyType({})
    language: str = ENGLISH
    _pages: dict[int, Static] = field(default_factory=dict)
    _translated: dict[str, FileTree] = field(default_factory=dict)

    def in_language(self, tag: str) -> FileTree:
        """Return the files in one of the languages. Texts that the language has no module for are in English."""
        if tag == self.language:
            return self
        if tag not in self._translated:
            folder = f"{_LANGUAGES}/{tag}/"
            own = {
                path.removeprefix(folder): each
                for path, each in self.files.items()
                if path.startswith(folder)
            }
            files = MappingProxyType({**self.files, **own})
            self._translated[tag] = FileTree(files, f"{self.name}.{tag}", self.languages, tag)
        return self._translated[tag]

    def named(self, name: str) -> FileTree | None:
        """Return the files with this name, in whichever language; None if these are no files of this version."""
        if name == self.name:
            return self
        tag = name.removeprefix(f"{self.name}.")
        return (
            self.in_language(tag) if tag != name and tag in self.languages and tag != self.language else None
        )

    def page(self, depth: int) -> Static:
        """Return the page for a path that many folders below `/desk`.

        Its addresses are relative to that path.
        """
        depth = min(depth, _DEPTH_MAX)
        if depth not in self._pages:
            source = self.files[INDEX_FILE]
            up = "../" * depth
            text = self._mirrored(self._preloading(source.body.decode())).replace(
                '"web/', f'"{up}web/{self.name}/'
            )
            text = text.replace(_HTML, self._html(), 1)
            self._pages[depth] = Static.of(source.content_type, text.encode())
        return self._pages[depth]

    def _mirrored(self, text: str) -> str:
        """Add the style sheet for writing from right to left, if the language needs it."""
        own = self.languages.get(self.language)
        return text if own is None or own.direction == "ltr" else text.replace("</head>", _RTL_STYLE, 1)

    def _html(self) -> str:
        """Return the first tag of the page: its language, and the names of all languages for the page's settings."""
        if not self.languages:
            return _HTML
        names = json.dumps({tag: each.name for tag, each in self.languages.items()}, ensure_ascii=False)
        direction = self.languages[self.language].direction
        return f'<html lang="{self.language}" dir="{direction}" data-languages="{escape(names)}">'

    def eager(self) -> list[str]:
        """Return the modules that run before the page shows anything.

        These are the entry and its static imports.
        """
        entries = _ENTRY.findall(self.files[INDEX_FILE].body.decode())
        found: dict[str, None] = {}
        for each in entries:
            self._follow(each, found)
        return list(found)

    def imports(self, module: str) -> list[str]:
        """Return the modules that a module imports statically, directly or not, without itself."""
        found: dict[str, None] = {}
        self._follow(module, found)
        return [each for each in found if each != module]

    def _follow(self, module: str, found: dict[str, None]) -> None:
        if module in found or module not in self.files:
            return
        found[module] = None
        for target in _IMPORT.findall(self.files[module].body.decode()):
            self._follow(_joined(module, target), found)

    def _preloading(self, text: str) -> str:
        entries = set(_ENTRY.findall(text))
        links = [
            f'<link rel="modulepreload" href="web/{each}">' for each in self.eager() if each not in entries
        ]
        return text.replace("</head>", "\n".join([*links, "</head>"]), 1)


def _joined(module: str, target: str) -> str:
    """Return the path of a module that is imported by a relative path."""
    parts = module.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _served(folder: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path of each served file and the file, in order of their names."""
    for each in sorted(folder.iterdir(), key=lambda each: str(each.name)):
        path = f"{above}{each.name}"
        if each.is_dir():
            yield from _served(each, f"{path}/")
        elif Path(each.name).suffix in _TYPES and not each.name.startswith("."):
            yield path, each


def _found(folder: Any) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each served file."""
    return ((path, file.read_bytes()) for path, file in _served(folder))


def load_tree(folder: Any) -> FileTree:
    """Read and compress a folder.

    Takes tens of milliseconds.
    """
    index = folder / _LANGUAGES_FILE
    languages = (
        msgspec.json.decode(index.read_bytes(), type=dict[str, PageLanguage]) if index.is_file() else {}
    )
    return _tree(_found(folder), languages)


# A comment at the beginning of a line, or a type within one. The files have no such text in their strings.
_COMMENT: Final = re.compile(r"^[ \t]*(?:/\*[\s\S]*?\*/[ \t]*|//.*)|/\*\*.*?\*/ ?", re.MULTILINE)
_SHARED: Final = ("desk/icon.svg", "desk/core/folding.js", "desk/vendor/preact.js")


def load_widget_tree(pages: Any) -> FileTree:
    """Read and compress the widget's files, and those that it shares with the desk.

    Comments are left out, because customers pay for each byte. Lines keep their numbers.

    Args:
        pages: the folder with `widget` and `desk`. The paths of files begin with these names.
    """
    own = (
        (f"widget/{path}", _without_comments(content) if path.endswith((".js", ".css")) else content)
        for path, content in _found(pages / "widget")
    )
    shared = ((path, (pages / path).read_bytes()) for path in _SHARED)
    return _tree(chain(own, shared))


def _without_comments(source: bytes) -> bytes:
    return _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), source.decode()).encode()


def _tree(
    found: Iterable[tuple[str, bytes]], languages: Mapping[str, PageLanguage] = MappingProxyType({})
) -> FileTree:
    loaded, digest = {}, sha256()
    for path, content in found:
        loaded[path] = Static.of(_TYPES[Path(path).suffix], content)
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return FileTree(
        MappingProxyType(loaded), digest.hexdigest()[:_NAME_CHARACTERS], MappingProxyType(languages)
    )


def _packaged() -> FileTree:
    return load_tree(files("deskwire.http.pages") / "desk")


def _packaged_widget() -> FileTree:
    return load_widget_tree(files("deskwire.http.pages"))


_PACKAGED: Final = Lazy(_packaged)
_PACKAGED_WIDGET: Final = Lazy(_packaged_widget)


class DeskFiles:
    """The files of the desk and of the widget.

    They are the package's, read once, or those of a folder, read again after a change.

    Args:
        folder: the desk's, for developers; None for the package's own. A folder `widget` beside it is served as well.
        shown: True if the desk is enabled.
    """

    def __init__(self, folder: Path | None = None, *, shown: bool = True) -> None:
        self.shown: Final = shown
        self.kept: Final = folder is None
        self._tree: Final[Lazy[FileTree] | OfFolders[FileTree]] = (
            _PACKAGED if folder is None else OfFolders(partial(load_tree, folder), folder)
        )
        widget = None if folder is None else folder.parent / "widget"
        self._widget_tree: Final[Lazy[FileTree] | OfFolders[FileTree]] = (
            _PACKAGED_WIDGET
            if folder is None or widget is None or not widget.is_dir()
            else OfFolders(partial(load_widget_tree, folder.parent), folder, widget)
        )

    async def tree(self) -> FileTree:
        """Return the desk's files."""
        return await self._tree.get()

    async def widget_tree(self) -> FileTree:
        """Return the widget's files."""
        return await self._widget_tree.get()
