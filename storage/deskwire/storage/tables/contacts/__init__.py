"""Contacts and their memory."""
