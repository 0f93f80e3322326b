"""The event log: event types, envelopes, topics, and the tail that readers follow."""
