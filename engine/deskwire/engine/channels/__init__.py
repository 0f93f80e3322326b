"""Channels: the places, such as a website, from which customers write."""
