"""Bytes that do not change while the service runs: packed once, sent again only to those who lack them."""

from __future__ import annotations

import gzip
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

import trio
from msgspec import Struct, field
from werkzeug.http import parse_etags

_TAG_CHARACTERS: Final = 16
T = TypeVar("T")


_PIECE: Final = 64 * 1024
"""Bytes that are sent at a time; a client that does not read holds no more of its own."""


@dataclass(frozen=True)
class Static:
    """A document of some type; `packed` is its gzip form, `tag` names its content."""

    content_type: str
    packed: bytes
    tag: str

    @classmethod
    def of(cls, content_type: str, body: bytes) -> Static:
        """The document with this content."""
        return cls(content_type, gzip.compress(body, mtime=0), sha256(body).hexdigest()[:_TAG_CHARACTERS])

    @classmethod
    def of_packed(cls, content_type: str, packed: bytes) -> Static:
        """The document whose gzip form this is."""
        return cls(content_type, packed, sha256(gzip.decompress(packed)).hexdigest()[:_TAG_CHARACTERS])

    @cached_property
    def body(self) -> bytes:
        """The content; kept from the first time on that a client can't unpack it."""
        return gzip.decompress(self.packed)

    def known_to(self, tags: str | None) -> bool:
        """Tell whether a client that sends these tags as `If-None-Match` has the content (RFC 9110 section 13.1.2)."""
        return parse_etags(tags).contains_weak(self.tag)


class Lazy(Generic[T]):
    """A value that takes a moment to make: made when it is first asked for, in a thread, and kept."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self._making = trio.Lock()

    async def get(self) -> T:
        """Return it."""
        if self._made is None:
            async with self._making:  # however many ask first, it is made once
                if self._made is None:
                    self._made = await trio.to_thread.run_sync(self._make)
        return self._made


async def chunks(shared: bytes) -> AsyncIterator[bytes]:
    """Bytes that many clients are sent, one part after the other."""
    for begin in range(0, len(shared), _PIECE):
        yield shared[begin : begin + _PIECE]


# DOC web_files.py: """The files of the desk: what is there, under one name for all of them, and what a page loads at once."""
#


_TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
"""What is served of the folder; licences and declarations of types are not."""

INDEX_FILE: Final = "index.html"
_ENTRY: Final = re.compile(r'<script type="module" src="web/([\w./-]+)">')
_IMPORT: Final = re.compile(r'^(?:import|export)\b[^;"(]*?"(\.[\w./-]+)"', re.MULTILINE)
_NAME_CHARACTERS: Final = 16
_DEPTH_MAX: Final = 8


class FileTree(Struct, frozen=True):
    """The files by path, and the name that all of them share: a digest of their paths and contents."""

    files: Mapping[str, Static]
    name: str
    _pages: dict[int, Static] = field(default_factory=dict)

    def page(self, depth: int) -> Static:
        """Return the page as it is below `/desk`, that many folders deep; its addresses are relative to that."""
        depth = min(depth, _DEPTH_MAX)
        if depth not in self._pages:
            source = self.files[INDEX_FILE]
            up = "../" * depth
            text = self._preloading(source.body.decode()).replace('"web/', f'"{up}web/{self.name}/')
            self._pages[depth] = Static.of(source.content_type, text.encode())
        return self._pages[depth]

    def eager(self) -> list[str]:
        """The modules that run before the page shows anything: the entry, and all that is imported from there."""
        entries = _ENTRY.findall(self.files[INDEX_FILE].body.decode())
        found: dict[str, None] = {}
        for each in entries:
            self._follow(each, found)
        return list(found)

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
    """Return the path that a module imports by a path relative to its own."""
    parts = module.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _found(folder: Any, above: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each file that is served, in order of their names."""
    for each in sorted(folder.iterdir(), key=lambda each: str(each.name)):
        path = f"{above}{each.name}"
        if each.is_dir():
            yield from _found(each, f"{path}/")
        elif Path(each.name).suffix in _TYPES and not each.name.startswith("."):
            yield path, each.read_bytes()


def load_tree(folder: Any) -> FileTree:
    """Read a folder; may take tens of milliseconds, for everything is compressed."""
    loaded, digest = {}, sha256()
    for path, content in _found(folder):
        loaded[path] = Static.of(_TYPES[Path(path).suffix], content)
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return FileTree(MappingProxyType(loaded), digest.hexdigest()[:_NAME_CHARACTERS])


def _packaged() -> FileTree:
    return load_tree(files("deskwire.http.pages") / "desk")


_PACKAGED: Final = Lazy(_packaged)


class DeskFiles:
    """The desk's files as the service has them: those of the package, read once, or a folder's as they are now.

    Args:
        folder: to read from at each request, for those who change the files; None for the package's own.
        shown: whether there is a desk at all.
    """

    def __init__(self, folder: Path | None = None, *, shown: bool = True) -> None:
        self.shown: Final = shown
        self.kept: Final = folder is None
        self._folder = folder

    async def tree(self) -> FileTree:
        """Return the files."""
        if self._folder is None:
            return await _PACKAGED.get()
        return await trio.to_thread.run_sync(load_tree, self._folder)
