"""The validation of workflows."""
