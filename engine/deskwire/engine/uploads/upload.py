"""Uploads, attachments, and the names of files (decisions 7)."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from msgspec import Struct

from deskwire.engine.core.errors import Conflict, Problem

NAME_MAX: Final = 200
"""The characters that a name may have; with three bytes each it still fits a header and a file system."""

_SUFFIX_MAX: Final = 20
_REPLACED: Final = str.maketrans(dict.fromkeys('"*:<>?|', "_"))
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})
"""The categories of characters that show nothing, or turn the order of others around."""
_JOINERS: Final = "\u200c\u200d"
"""What joins emoji to one, and letters of Persian and Indic scripts or keeps them apart: it is part of how a name is written."""
_STRAY_JOINER: Final = re.compile(
    f"(?:^|(?<=[\\s.{_JOINERS}]))[{_JOINERS}]+|[{_JOINERS}]+(?=[\\s.{_JOINERS}]|$)|(?<=[ -~])[{_JOINERS}]+(?=[ -~])"
)
"""A joiner that joins nothing: at an end, or between characters of ASCII, where two names that look alike would differ."""


class Upload(Struct, frozen=True):
    """A file that a project has sent. Its bytes are kept once for each project and content.

    Args:
        project: storage key.
        type: media type, found from the bytes.
        size: in bytes.
        sha256: of the content, as 64 hex digits.
        created_at: in milliseconds.
    """

    id: str
    project: int
    name: str
    type: str
    size: int
    sha256: str
    created_at: int


class Attachment(Struct, frozen=True):
    """An upload as a message refers to it; `size` in bytes."""

    id: str
    name: str
    type: str
    size: int


def unknown_upload(pointer: str, upload_id: str) -> Problem:
    """Return the problem with the id of no upload, or of another project's."""
    return Problem(pointer, "unknown", f"There is no upload {upload_id!r} in this project.")


def quota_exceeded(quota: int) -> Conflict:
    """Return the refusal of an upload that does not fit a project's quota."""
    return Conflict(
        f"The project's uploads may take {quota:,} bytes together; this one does not fit any more.",
        code="upload_quota_exceeded",
    )


def clean_name(filename: str) -> str:
    """Return a name that harms no shell, header or file system, as close to the given one as possible.

    It is the last part of a path, without control characters, characters that write from right to left, and those
    that a file system forbids; at most 200 characters, the ending kept; `file` if nothing is left.
    """
    last = filename.replace("\\", "/").rpartition("/")[2]
    seen = "".join(" " if each.isspace() else each for each in unicodedata.normalize("NFC", last))
    kept = "".join(each for each in seen if each in _JOINERS or unicodedata.category(each) not in _UNSEEN)
    kept = _STRAY_JOINER.sub("", kept)
    name = " ".join(kept.translate(_REPLACED).split()).strip(". ")
    if len(name) > NAME_MAX:
        stem, dot, suffix = name.rpartition(".")
        name = (
            f"{stem[: NAME_MAX - len(suffix) - 1]}.{suffix}" if dot and len(suffix) <= _SUFFIX_MAX else name
        )
    return name[:NAME_MAX].strip(f". {_JOINERS}") or "file"
