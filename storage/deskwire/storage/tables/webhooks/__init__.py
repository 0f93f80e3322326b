"""SQL of webhook endpoints and deliveries."""
