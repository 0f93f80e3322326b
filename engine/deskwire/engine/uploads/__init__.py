"""Uploads: files that clients send, their links, their attachment to messages, and their removal."""
