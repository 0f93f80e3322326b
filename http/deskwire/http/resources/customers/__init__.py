"""Handlers of the calls that customers make from their own browsers."""
