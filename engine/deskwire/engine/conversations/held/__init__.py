"""Held messages: replies and notes that wait for their time, and can be taken back until then."""
