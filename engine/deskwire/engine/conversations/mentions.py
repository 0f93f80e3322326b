"""Mentions in notes, and the followers of a conversation.

- A note names users and teams by id. The text stays as its author wrote it, and a mention keeps the name of that time.
- A mention of a team mentions its members at that time. Only members whose role can read conversations are mentioned, and
  never the author of the note.
- The people whom a note mentions follow the conversation from then on, and so does its author, who waits for an answer.
- Mentions and follows end with the membership, and with the note or the conversation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import READ, Project
from deskwire.engine.conversations.conversation import Mention, Message
from deskwire.engine.core.errors import Invalid, Problem
from deskwire.engine.core.ids import is_id

MENTIONS_MAX: Final = 20
"""Users and teams that a note can mention."""

MENTIONED_MAX: Final = 500
"""People whom a note can mention, alone or in teams, which bounds its commit."""


class MentionablePerson(Struct, frozen=True):
    """A member of the project's organisation.

    Args:
        rowid: the user's storage key.
        reads: whether the member's role can read conversations.
    """

    rowid: int
    id: str
    name: str
    reads: bool


class MentionableTeam(Struct, frozen=True):
    """A team of the project with its present members."""

    name: str
    members: Sequence[MentionablePerson]


class OwnMentions(Struct, frozen=True):
    """The number of notes of a conversation that mention a user, and of those that the user has not seen."""

    all: int = 0
    unseen: int = 0


NO_MENTIONS: Final = OwnMentions()


class MentionReader(Protocol):
    """Queries on mentions and followers. Users, projects and conversations are storage keys, unless said otherwise."""

    def mentionable_person(self, organisation: int, user_id: str) -> MentionablePerson | None:
        """Return the member of the organisation with this id."""

    def mentionable_team(self, project: int, team_id: str) -> MentionableTeam | None:
        """Return the project's team with this id."""

    def mentioned_by(self, conversation: int, message_id: str) -> Sequence[str]:
        """Return the ids of the users whom a note mentions, in order of their storage keys."""

    def own_mentions(
        self, user: int, project: int, conversations: Sequence[int]
    ) -> Mapping[int, OwnMentions]:
        """Return the mentions of a user by conversation, without conversations that have none."""

    def unseen_mentions(self, user: int, project: int, bound: int) -> int:
        """Return the number of mentions that a user has not seen, counted up to `bound`."""

    def followers(self, conversations: Sequence[int]) -> Mapping[int, Sequence[str]]:
        """Return the ids of the users who follow each conversation and can read it, the longest follower first."""

    def followed_since(self, user: int, conversation: int) -> int | None:
        """Return the time (ms) since which a user follows a conversation; None if the user does not."""


class MentionTransaction(MentionReader, Protocol):
    """Changes of mentions and followers."""

    def claim_members(self, organisation: int, users: Sequence[int]) -> Collection[int]:
        """Return the users who are members of the organisation, and keep them members until this commit."""

    def insert_mentions(
        self, project: int, conversation: int, message_id: str, users: Sequence[int], at: int
    ) -> None:
        """Store that a note mentions these users at this time (ms)."""

    def delete_mentions(self, conversation: int, message_id: str) -> None:
        """Remove the mentions of a note."""

    def see_mentions(self, user: int, project: int, conversation: int, upto: int, at: int) -> None:
        """Store that a user has seen the mentions in a conversation up to the message with this rowid."""

    def follow(self, project: int, conversation: int, users: Sequence[int], at: int) -> bool:
        """Let users follow a conversation; return False if all of them do already."""

    def unfollow(self, project: int, conversation: int, user: int) -> bool:
        """Let a user no longer follow a conversation; return False if the user does not."""


class FoundMentions(Struct, frozen=True):
    """The users and teams of some ids, and the people whom they stand for: user ids by storage key."""

    mentions: tuple[Mention, ...]
    people: Mapping[int, str]


def find_mentions(
    reader: MentionReader, project: Project, ids: Sequence[str], pointer: str = "/mentions"
) -> FoundMentions:
    """Return the mentions of these ids. Raises Invalid with each id that can't be mentioned."""
    found, problems = [], list[Problem]()
    people: dict[int, str] = {}
    for place, identifier in enumerate(ids):
        where = f"{pointer}/{place}"
        if identifier in ids[:place]:
            problems.append(Problem(where, "repeated", "A note can mention a user or team only once."))
            continue
        mention, reached = _found(reader, project, identifier, where, problems)
        if mention is not None:
            found.append(mention)
            people |= reached
    if len(people) > MENTIONED_MAX:
        message = f"These mentions reach {len(people)} people; {MENTIONED_MAX} are the most."
        problems.append(Problem(pointer, "too_many", message))
    if problems:
        raise Invalid(*problems)
    return FoundMentions(tuple(found), people)


def _found(
    reader: MentionReader, project: Project, identifier: str, where: str, problems: list[Problem]
) -> tuple[Mention | None, Mapping[int, str]]:
    """Return the mention of an id with the people it stands for, or add its problem."""
    if is_id(identifier, "team"):
        team = reader.mentionable_team(project.rowid, identifier)
        if team is None:
            problems.append(Problem(where, "unknown", "There is no such team in this project."))
            return None, {}
        reached = {each.rowid: each.id for each in team.members if each.reads}
        if not reached:
            message = f"No member of the team {team.name} can read conversations in this project."
            problems.append(Problem(where, "no_access", message))
        return Mention("team", identifier, team.name), reached
    person = reader.mentionable_person(project.organisation, identifier) if is_id(identifier, "usr") else None
    if person is None:
        message = "There is no such user or team in this project; give the id of one, usr_… or team_…."
        problems.append(Problem(where, "unknown", message))
        return None, {}
    if not person.reads:
        message = (
            f"{person.name} can't read conversations; give them a role with the permission {READ} first."
        )
        problems.append(Problem(where, "no_access", message))
    return Mention("user", identifier, person.name), {person.rowid: person.id}


def store_mentions(
    tx: MentionTransaction, project: Project, conversation: int, note: Message, at: int
) -> bool:
    """Store the mentions of a new note, and let those mentioned and the author follow; return whether any did not yet.

    Raises Invalid if one of them can no longer be mentioned.
    """
    ids = [each.id for each in note.mentions]
    people = find_mentions(tx, project, ids).people
    if len(tx.claim_members(project.organisation, [*people])) < len(people):
        people = find_mentions(tx, project, ids).people  # another node has just removed a member
    others = [rowid for rowid, user_id in people.items() if user_id != note.author.id]
    tx.insert_mentions(project.rowid, conversation, note.id, others, at)
    author = note.author.id and tx.mentionable_person(project.organisation, note.author.id)
    following = [*others, author.rowid] if author and author.reads else others
    return tx.follow(project.rowid, conversation, following, at)


def mention_view(mention: Mention) -> dict[str, Any]:
    """Return the mention's object in the API."""
    return {"type": mention.type, "id": mention.id, "name": mention.name}


def left_mentions(before: Message, text: str) -> tuple[Mention, ...]:
    """Return the mentions of a note after its text was redacted, without those whose name was taken from the text."""
    return tuple(each for each in before.mentions if _shown(each, text) or not _shown(each, before.text))


def _shown(mention: Mention, text: str) -> bool:
    return f"@{mention.name}" in text
