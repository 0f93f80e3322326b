"""The commit: jobs in batches of two or three round trips, and by themselves."""
