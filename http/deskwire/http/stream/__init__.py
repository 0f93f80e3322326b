"""The realtime stream over websockets."""
