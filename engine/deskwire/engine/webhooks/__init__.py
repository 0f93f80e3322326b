"""Webhooks: endpoints, deliveries, and the workers that make them."""
