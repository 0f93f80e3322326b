"""The rule by which conversations expire."""

from __future__ import annotations

from typing import Literal

from deskwire.engine.conversations.commands import ConversationRetention
from deskwire.engine.conversations.conversation import Conversation

ExpiryReason = Literal["bot_only", "archived"]


def expiry_reason(state: Conversation, periods: ConversationRetention, at: int) -> ExpiryReason | None:
    """Return why the conversation has expired at time `at` (ms); None if it has not."""
    if state.merged_into is not None:  # it is deleted with the conversation that shows its messages
        return None
    if (
        periods.archived is not None
        and state.archived_at is not None
        and state.archived_at + periods.archived < at
    ):
        return "archived"
    since = state.created_at if state.imported_at is None else state.imported_at
    if not state.human and since + periods.bot_only < at:
        return "bot_only"
    return None
