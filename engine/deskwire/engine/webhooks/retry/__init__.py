"""The retry schedule and the circuit breaker."""
