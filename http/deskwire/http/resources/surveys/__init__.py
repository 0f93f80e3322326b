"""Surveys, responses and insights."""
