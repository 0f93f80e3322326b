"""The service itself: health and readiness."""
