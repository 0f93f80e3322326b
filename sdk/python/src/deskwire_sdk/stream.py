"""Follows the live events of a project. Needs the extra `deskwire-sdk[stream]`."""

try:
    from deskwire_sdk._async.stream import AsyncStreamConsumer
    from deskwire_sdk._reconnects import Gap, StreamEvent
    from deskwire_sdk._sync.stream import StreamConsumer
except ModuleNotFoundError as error:
    if error.name is None or error.name.startswith("deskwire_sdk"):
        raise
    raise ModuleNotFoundError(
        f"The stream needs {error.name}: pip install 'deskwire-sdk[stream]'", name=error.name
    ) from error

__all__ = ["AsyncStreamConsumer", "Gap", "StreamConsumer", "StreamEvent"]
