"""Uploads, attachments, and cleaning of file names (decisions 7)."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from msgspec import Struct

from deskwire.engine.core.errors import Conflict, Problem

# Characters of a name. With three bytes each, it still fits into a header and a file system.
NAME_MAX: Final = 200

_SUFFIX_MAX: Final = 20
_REPLACED: Final = str.maketrans(dict.fromkeys('"*:<>?|', "_"))
# Categories of characters that are invisible or change the order of others.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})
# Joiners combine emoji, and connect or separate letters of Persian and Indic scripts, so they are part of a
# name's spelling.
_JOINERS: Final = "\u200c\u200d"
# A joiner without effect: at an end, or between ASCII characters, where it could make two names look alike.
_STRAY_JOINER: Final = re.compile(
    f"(?:^|(?<=[\\s.{_JOINERS}]))[{_JOINERS}]+|[{_JOINERS}]+(?=[\\s.{_JOINERS}]|$)|(?<=[ -~])[{_JOINERS}]+(?=[ -~])"
)


class Upload(Struct, frozen=True):
    """A file sent to a project. Each content is stored once per project.

    Args:
        project: storage key.
        type: media type, detected from the bytes.
        size: in bytes.
        sha256: of the content, as 64 hex digits.
        created_at: in milliseconds.
        contact: the `con_` id of the customer who sent it; None for an upload of a backend or agent.
    """

    id: str
    project: int
    name: str
    type: str
    size: int
    sha256: str
    created_at: int
    contact: str | None = None


class Attachment(Struct, frozen=True):
    """An upload as a message refers to it; `size` is in bytes."""

    id: str
    name: str
    type: str
    size: int


def unknown_upload(pointer: str, upload_id: str) -> Problem:
    """Return the problem with an id that is not an upload of the project."""
    return Problem(pointer, "unknown", f"There is no upload {upload_id!r} in this project.")


def quota_exceeded(quota: int) -> Conflict:
    """Return the refusal of an upload that exceeds a project's quota."""
    return Conflict(
        f"The project's uploads may take {quota:,} bytes together; this one does not fit.",
        code="upload_quota_exceeded",
    )


def clean_name(filename: str) -> str:
    """Return a name that is safe for shells, headers and file systems.

    The name is as close to the given one as possible: the last part of a path, without control characters,
    characters that change the text direction, and characters that file systems forbid. It has at most 200
    characters and keeps its extension. An empty name becomes `file`.
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
