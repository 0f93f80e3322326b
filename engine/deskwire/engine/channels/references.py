"""References of channels to workflows and surveys, which end with these."""

from __future__ import annotations

from deskwire.engine.accounts.people import Project
from deskwire.engine.channels.channel import CHANNELS_MAX
from deskwire.engine.channels.ports import ChannelTransaction
from deskwire.engine.core.values import replace


def drop_references(
    tx: ChannelTransaction,
    project: Project,
    at: int,
    *,
    workflow: str | None = None,
    survey: str | None = None,
) -> list[str]:
    """Take a deleted workflow or survey out of the settings of the project's channels. Return the ids of these channels.

    Args:
        at: time in milliseconds.
    """
    tx.lock_channels(project.rowid)
    changed = []
    for channel in tx.channels(project.rowid, None, CHANNELS_MAX):
        after = channel
        if workflow is not None and channel.starts_workflow == workflow:
            after = replace(after, starts_workflow=None)
        if survey is not None and channel.survey == survey:
            after = replace(after, survey=None)
        if after != channel:
            tx.save_channel(replace(after, updated_at=at))
            changed.append(channel.id)
    return changed
