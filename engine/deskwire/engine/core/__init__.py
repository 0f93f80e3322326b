"""The floor that every domain of the engine stands on; nothing here knows a domain."""
