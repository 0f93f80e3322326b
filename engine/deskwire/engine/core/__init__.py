"""Building blocks that every domain of the engine uses. Nothing here imports a domain."""
