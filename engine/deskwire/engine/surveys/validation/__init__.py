"""The validation of survey definitions."""
