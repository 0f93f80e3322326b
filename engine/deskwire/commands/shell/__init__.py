"""Shared parts of commands: help, common options, output, and questions."""
