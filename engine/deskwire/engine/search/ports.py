"""The requirements of search on the store and on the index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.inbox import InboxReader
from deskwire.engine.tickets.ports import TicketReader

T = TypeVar("T")


class IndexedChange(NamedTuple):
    """A conversation that was retitled or deleted, or whose messages lost words by a redaction.

    Args:
        number: position among all changes.
        message: of a deletion, the newest message left in the database; otherwise None.
        reworded: whether all its messages must be indexed again.
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
    """A conversation and its title, if it has one."""

    row: int
    project: int
    title: str | None


class IndexPosition(NamedTuple):
    """The last rows that were indexed, and the id of that message."""

    message: int
    message_id: str | None
    conversation: int
    change: int


class IndexLag(NamedTuple):
    """The number of rows that are not indexed yet.

    Args:
        building: whether the index is being built and has never been complete.
    """

    messages: int
    conversations: int
    building: bool


class RowMatches(NamedTuple):
    """The rows that match, best first; `more` if the limit cut the list."""

    rows: Sequence[int]
    more: bool


TextOfMessage: TypeAlias = tuple[str, str, *tuple[int, ...]]
"""The id and the text of a message, and columns for the store."""


class ConversationMatch(NamedTuple):
    """A conversation that matches, with its newest messages and notes, newest first.

    Those without a word of the query may be missing. They are read within the query, as far as they are needed.
    """

    conversation: Conversation
    contact: Contact
    texts: Iterable[TextOfMessage]


EVERYTHING: Final = IndexPosition((1 << 63) - 1, None, (1 << 63) - 1, (1 << 63) - 1)
"""The bound where rows become visible in the order of their keys, so that every visible row may be indexed."""


class SourceReader(Protocol):
    """Queries on the rows that are indexed."""

    def search_changes(self, after: int, limit: int) -> Sequence[IndexedChange]:
        """Return the changes after a number."""

    def texts(self, after: int, limit: int) -> Iterator[MessageText]:
        """Return messages and notes after a row, oldest first, to be read within the query."""

    def texts_of(self, conversation: int) -> Iterator[MessageText]:
        """Return all messages and notes of a conversation, to be read within the query."""

    def titles(self, after: int, limit: int) -> Sequence[ConversationTitle]:
        """Return the conversations after a row, with or without a title."""

    def title(self, conversation: int) -> ConversationTitle | None:
        """Return a conversation; None if it was deleted."""


class SourceTransaction(SourceReader, Protocol):
    """Changes of the rows that are indexed."""

    def forget_search_changes(self, upto: int) -> None:
        """Remove the changes that the index has stored durably."""


class SearchReader(SourceReader, TicketReader, InboxReader, ContactReader, Protocol):
    """Queries of a search. They return only rows that still exist, even if the index is outdated."""

    def search_lag(self) -> IndexLag:
        """Return the lag of the index, all zeros if it is complete."""

    def found_conversations(self, project: int, words: Sequence[str], limit: int) -> RowMatches:
        """Return conversations that have all these words, newest activity first."""

    def conversation_named(self, project: int, name: str) -> int | None:
        """Return the conversation with this id, or the one that has the message with this id."""

    def shown(self, rows: Sequence[int], messages: int, words: Sequence[str]) -> Sequence[ConversationMatch]:
        """Return conversations with those of their newest `messages` messages and notes that may have one of these words."""


class IndexTransaction(Protocol):
    """Changes of the index."""

    def add(self, conversation: int, project: int, words: AbstractSet[str]) -> None:
        """Add words of a conversation's messages."""

    def set_title(self, conversation: int, project: int, words: AbstractSet[str]) -> None:
        """Replace the words of the title."""

    def replace(self, conversation: int, project: int, words: AbstractSet[str]) -> None:
        """Replace the words of the messages, and schedule the removed ones to be overwritten."""

    def remove(self, conversation: int) -> None:
        """Remove all words of a conversation, and schedule them to be overwritten."""

    def move_to(self, position: IndexPosition, *, complete: bool) -> None:
        """Set the position of the index, and whether it is complete there."""


class SearchIndex(Protocol):
    """The index, as the indexer sees it."""

    @property
    def position(self) -> IndexPosition:
        """The last rows that were indexed."""

    @property
    def complete(self) -> bool:
        """True if the index has been complete at some point."""

    @property
    def scrub_due(self) -> bool:
        """True if bytes of removed words may still be in its file."""

    async def bound(self) -> IndexPosition:
        """Return the last rows that can be indexed safely: no earlier row can become visible afterwards.

        Also reloads `position` and `complete`, which another node may have changed. Raises Unavailable.
        """

    async def write(self, job: Callable[[IndexTransaction], T]) -> T:
        """Run a job in one transaction.

        Raises Unavailable, with nothing stored, if the disk refuses or another node has written in the meantime.
        """

    async def settle(self) -> float | None:
        """Sync the index to disk and overwrite removed words, one step at a time.

        Return the seconds to wait before the next step; None when everything is done.
        """

    async def refresh_statistics(self) -> None:
        """Let the database plan searches for the present size, after much was indexed. Raises Unavailable.

        The indexer calls it whenever it has indexed all rows.
        """
