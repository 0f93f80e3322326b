"""Webhooks: endpoints, their deliveries, and the workers that send them."""
