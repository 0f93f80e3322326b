"""Background tasks: retries, schedules, failure containment, and the primitives they wait on."""
