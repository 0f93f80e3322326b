"""Websocket frames and messages (RFC 6455); no I/O."""
