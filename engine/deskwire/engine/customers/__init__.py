"""Customers as callers: their sessions, and what they may see and do."""
