"""Spoken replies: audio and a ticket go in, a text to send comes out."""
