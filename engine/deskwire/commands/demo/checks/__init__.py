"""The checks of what the demo was promised: every change once, in order, on each way out."""
