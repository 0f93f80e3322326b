"""The things that a search needs of the store and of the index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, Protocol, TypeVar

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.conversations.conversation import Conversation, Message
from deskwire.engine.conversations.inbox import InboxReader
from deskwire.engine.tickets.ports import TicketReader

T = TypeVar("T")


class IndexedChange(NamedTuple):
    """A conversation whose title was changed, that was deleted, or of whose messages some words are gone.

    Args:
        message: the newest message that its deletion left; None for what is no deletion.
        reworded: whether all words of its messages are to be taken in anew.
    """

    number: int
    conversation: int
    message: int | None
    reworded: bool = False


class MessageText(NamedTuple):
    """A message or note."""

    row: int
    id: str
    conversation: int
    project: int
    text: str


class ConversationTitle(NamedTuple):
    """A conversation, and its title if it has one."""

    row: int
    project: int
    title: str | None


class IndexPosition(NamedTuple):
    """The rows up to which the index has taken everything in, and the id of that message."""

    message: int
    message_id: str | None
    conversation: int
    change: int


class IndexLag(NamedTuple):
    """The rows that the index has yet to take in.

    Args:
        building: whether it was never complete since it was begun.
    """

    messages: int
    conversations: int
    building: bool


class RowMatches(NamedTuple):
    """The rows that were found, best first; with `more` there are others."""

    rows: Sequence[int]
    more: bool


class ConversationMatch(NamedTuple):
    """A conversation that was found, and its newest messages and notes, oldest first."""

    conversation: Conversation
    contact: Contact
    messages: Sequence[Message]


EVERYTHING: Final = IndexPosition((1 << 63) - 1, None, (1 << 63) - 1, (1 << 63) - 1)
"""The bound of an index whose rows come in the order of their keys: each that can be seen may be taken in."""


class SourceReader(Protocol):
    """Queries on what the index is made of."""

    def search_changes(self, after: int, limit: int) -> Sequence[IndexedChange]:
        """Return what was changed behind a number."""

    def texts(self, after: int, limit: int) -> Iterator[MessageText]:
        """Return messages and notes behind a row, oldest first, to be read within the query."""

    def texts_of(self, conversation: int) -> Iterator[MessageText]:
        """Return all messages and notes of a conversation, to be read within the query."""

    def titles(self, after: int, limit: int) -> Sequence[ConversationTitle]:
        """Return the conversations behind a row, those without a title, too."""

    def title(self, conversation: int) -> ConversationTitle | None:
        """Return a conversation; None if it is gone."""


class SourceTransaction(SourceReader, Protocol):
    """Changes of what the index is made of."""

    def forget_search_changes(self, upto: int) -> None:
        """Remove the changes that the index has taken in for good."""


class SearchReader(SourceReader, TicketReader, InboxReader, ContactReader, Protocol):
    """Queries of a search; what they find is there at their moment, whatever the index knows."""

    def search_lag(self) -> IndexLag:
        """Return how far the index is behind; nothing but zeros if it is complete."""

    def found_conversations(self, project: int, words: Sequence[str], limit: int) -> RowMatches:
        """Return conversations with these words, newest activity first."""

    def conversation_named(self, project: int, name: str) -> int | None:
        """Return the conversation that has this id, or a message of this id."""

    def shown(self, rows: Sequence[int], messages: int) -> Sequence[ConversationMatch]:
        """Return conversations that this query has found, each with so many of its newest messages and notes."""


class IndexTransaction(Protocol):
    """Changes of the index."""

    def add(self, conversation: int, project: int, words: AbstractSet[str]) -> None:
        """Add words of messages."""

    def set_title(self, conversation: int, project: int, words: AbstractSet[str]) -> None:
        """Put words in the place of those of the title."""

    def replace(self, conversation: int, project: int, words: AbstractSet[str]) -> None:
        """Put words in the place of those of messages, and have the others overwritten."""

    def remove(self, conversation: int) -> None:
        """Take out all words of a conversation, if it has any, and have them overwritten."""

    def move_to(self, position: IndexPosition, *, complete: bool) -> None:
        """Note up to where everything was taken in, and whether that was everything there was."""


class SearchIndex(Protocol):
    """The index, for the one task that keeps it."""

    @property
    def position(self) -> IndexPosition:
        """The rows up to which it has taken everything in."""

    @property
    def complete(self) -> bool:
        """True if that was once everything there was."""

    @property
    def scrub_due(self) -> bool:
        """True if bytes of what was taken out may still be in its file."""

    async def bound(self) -> IndexPosition:
        """Return the rows up to which none can appear any more that a query begun after this does not see.

        Whoever else has kept the index, `position` and `complete` are what is stored now. Raises Unavailable.
        """

    async def write(self, job: Callable[[IndexTransaction], T]) -> T:
        """Do a job in one transaction. Raises Unavailable if nothing of it is stored: the disk refuses, or another node was first."""

    async def settle(self) -> float | None:
        """Have what was written on disk for good, and what was taken out overwritten, a part at a time.

        Return the seconds to wait before the next part; None once all is done.
        """
