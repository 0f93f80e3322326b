"""The listener with its certificate, the fast path for plain requests, and adapters of libraries for all others."""
