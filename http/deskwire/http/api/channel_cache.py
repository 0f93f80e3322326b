"""Cache of channels, for the calls of visitors.

Every page view of a website with a widget asks for its channel. A commit that changes a channel or project invalidates the cache
on every node before the change is answered, so no node shows old settings after it.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.ports import CallerCommit
from deskwire.engine.channels.channel import Channel
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import NotFound
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Reader, Store

# Channels with looks of some kilobytes each. Further ones are read from the store.
_CACHE_SIZE_MAX: Final = 1_000

FoundChannel = tuple[Project, Channel]


class ChannelCache(Struct):
    """The cache of channels. Unknown ids are not cached, because strangers choose them."""

    store: Store
    _known: dict[str, FoundChannel] = field(default_factory=dict)

    async def find(self, channel_id: str) -> FoundChannel:
        """Return a channel with its project. Raises NotFound (`channel_not_found`)."""
        known = self._known
        found = known.get(channel_id)
        if found is None:
            found = await self._read(channel_id)
            if len(known) >= _CACHE_SIZE_MAX:
                known.clear()
            known[channel_id] = found
        return found

    async def _read(self, channel_id: str) -> FoundChannel:
        def query(reader: Reader) -> FoundChannel | None:
            channel = reader.channel(channel_id)
            project = None if channel is None else reader.project_with(channel.project)
            return None if channel is None or project is None else (project, channel)

        found = await self.store.read(InlineQuery(query)) if is_id(channel_id, "chn") else None
        if found is None:
            raise no_such_channel()
        return found

    def follow(self, commits: Commits[CallerCommit]) -> None:
        """Invalidate the cache with each commit that changes callers or channels, from now on."""
        commits.subscribe(lambda _: self.invalidate(), "callers")

    def invalidate(self) -> None:
        """Empty the cache: channels or projects have changed."""
        self._known = {}  # a look-up under way stores its result in the old dict


def no_such_channel() -> NotFound:
    """Return the refusal for channels that are unknown or removed, or of another project."""
    return NotFound("There is no such channel; it may have been deleted.", code="channel_not_found")
