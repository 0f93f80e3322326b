"""Follows the live events of a project. Needs the extra `deskwire-sdk[stream]`."""

from deskwire_sdk._async.stream import AsyncStreamConsumer
from deskwire_sdk._reconnects import Gap, StreamEvent
from deskwire_sdk._sync.stream import StreamConsumer

__all__ = ["AsyncStreamConsumer", "Gap", "StreamConsumer", "StreamEvent"]
