"""Routes of webhook endpoints and deliveries."""
