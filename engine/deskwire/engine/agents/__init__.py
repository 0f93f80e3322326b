"""The streams that agents read, as at the desk: all events of a project, ephemeral events, and presence.

Unlike `engine.stream`, it has no channels, takeover or confirmed positions: each reader has a stream of its own, and names the
event after which it continues. `streams.AgentStreams` is the entry; `deskwire.http.stream.sse` writes the streams.
"""
