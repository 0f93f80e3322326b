"""The commit: jobs in batches of three round trips, and by themselves."""
