"""Content in several languages."""
