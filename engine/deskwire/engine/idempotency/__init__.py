"""Requests that are carried out once, however often they are sent (decisions 1)."""
