"""Queries on the event log and the stream consumers."""
