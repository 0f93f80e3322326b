"""The cursor file from which `listen` continues: position, signing secret, last sequences."""

from __future__ import annotations

import fcntl
import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import orjson

from deskwire.commands.listen.window import NOTHING_AHEAD, FinishedAhead

_PRIVATE: Final = 0o600
_PRIVATE_FOLDER: Final = 0o700


class CursorError(Exception):
    """The file can't be used; the text gives the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class CursorState:
    """The content of the cursor's file.

    Args:
        after: the last event such that it and all earlier events are finished; None for the feed's beginning.
        secret: the signing secret with its prefix.
        sequences: the last sequences of recent conversations, see `window.SequenceTable`.
        forgot: whether older conversations were dropped.
        ahead: the events finished after `after`, see `window.FinishedAhead`.
    """

    after: str | None
    secret: str = field(repr=False)
    sequences: dict[str, int] = field(default_factory=dict)
    forgot: bool = False
    ahead: FinishedAhead = NOTHING_AHEAD


def default_path(state: Path, url: str, project_id: str, kind: str = "listen") -> Path:
    """Return the default path in the user's state directory: one per service, project and kind of run."""
    service = hashlib.sha256(url.encode()).hexdigest()[:8]
    return state / "deskwire" / f"{kind}-{project_id}-{service}.json"


class CursorFile:
    """The cursor file, locked by this process while the context is open.

    Entering raises CursorError if another process has the lock or the folder can't be used.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._lock = -1

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
            self._lock = os.open(self._beside("lock"), os.O_RDWR | os.O_CREAT, _PRIVATE)
        except OSError as error:
            raise CursorError(
                f"The cursor's folder can't be used: {error}; give another --cursor."
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise CursorError(
                f"Another `deskwire listen` uses the cursor {self.path}; "
                "give --cursor with a file of its own."
            ) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def load(self) -> CursorState | None:
        """Return the saved state, None if there is none. Raises CursorError if the file is invalid."""
        try:
            return _kept(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise CursorError(
                f"The cursor {self.path} can't be read ({error}); remove it, or give another --cursor."
            ) from error

    def save(self, kept: CursorState) -> None:
        """Replace the file atomically. Raises CursorError."""
        scratch = self._beside("new")
        try:
            handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE)
            with os.fdopen(handle, "wb") as file:
                file.write(orjson.dumps(_document(kept)))
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(self.path)
        except OSError as error:
            raise CursorError(f"The cursor {self.path} can't be written: {error}") from error

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{ending}")


def _document(kept: CursorState) -> dict[str, object]:
    return {
        "after": kept.after,
        "secret": kept.secret,
        "sequences": kept.sequences,
        "forgot": kept.forgot,
        "upto": kept.ahead.upto,
        "undone": sorted(kept.ahead.undone),
    }


def _kept(text: bytes) -> CursorState:
    """Parse the content that `_document` made. Raises ValueError for any other content."""
    loaded = orjson.loads(text)
    match loaded:
        case {
            "after": None | str() as after,
            "secret": str(secret),
            "sequences": dict(sequences),
            "forgot": bool(forgot),
        } if all(isinstance(each, int) for each in sequences.values()):
            return CursorState(after, secret, sequences, forgot, _ahead(loaded))
    raise ValueError("it is not a cursor")


def _ahead(loaded: dict[str, object]) -> FinishedAhead:
    """Return the events finished after the cursor; an older file has no such field. Raises ValueError."""
    match loaded.get("upto"), loaded.get("undone", []):
        case None | str() as upto, list(undone) if all(isinstance(each, str) for each in undone):
            return FinishedAhead(upto, frozenset(undone))
    raise ValueError("it is not a cursor")
