"""Responses: headers, files, ranges."""
