"""The listener, its connections, and the fast path for plain requests."""
