"""Tickets: their state, their changes, and the timer that wakes snoozed ones."""
