"""The changes by the jobs of a batch, laid over what is stored for the jobs behind them."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.ports import Claimed
from deskwire.engine.idempotency.idempotent_requests import StoredResponse

K = TypeVar("K")
V = TypeVar("V")


class Saved(NamedTuple):
    """The state that a batch gives a conversation.

    Args:
        before: the state that is stored, None if the batch has made the conversation.
        state: as it will be.
    """

    before: Conversation | None
    state: Conversation
    claimed: Claimed


class Laid:
    """The changes that jobs have laid over what is stored, each of which can be taken back.

    `saved` are conversations, `made` the projects of new ones, `contacts` new contacts by project and user id, `kept` answers,
    and `ended` deliveries that wait no more.
    """

    __slots__ = ("_before", "contacts", "ended", "kept", "made", "saved")

    def __init__(self) -> None:
        self.saved: dict[int, Saved] = {}
        self.made: dict[int, int] = {}
        self.contacts: dict[tuple[int, str], Contact] = {}
        self.kept: dict[bytes, StoredResponse] = {}
        self.ended: dict[int, bool] = {}
        self._before: list[tuple[dict[Any, Any], Any, Any]] = []

    def begin(self) -> None:
        """Keep what there is."""
        self._before.clear()

    def put(self, where: dict[K, V], key: K, value: V) -> None:
        """Lay something over."""
        self._before.append((where, key, where.get(key)))
        where[key] = value

    def earlier(self, where: dict[K, V], key: K) -> bool:
        """Tell whether there was such an entry at `begin`."""
        for other, known, before in self._before:
            if other is where and known == key:
                return before is not None
        return key in where

    def cut(self) -> None:
        """Take back what was laid over since `begin`."""
        while self._before:
            where, key, value = self._before.pop()
            if value is None:
                del where[key]
            else:
                where[key] = value
