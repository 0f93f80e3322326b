"""The HTTP API and the Pusher websocket in front of the engine."""
