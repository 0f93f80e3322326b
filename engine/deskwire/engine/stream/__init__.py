"""The consumers' realtime stream without its protocol: channels, leases and takeover, cursors, checkpoints (decisions 5).

`hub.Hub` is the entry. One consumer at a time holds a channel, by the channel's lease; `engine.cluster` has the nodes' leases.
`engine.agents` has the streams of the desk, and `deskwire.http.stream` writes both to sockets.
"""
