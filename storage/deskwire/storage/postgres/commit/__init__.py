"""The write path: batches of jobs on Trio's thread, single jobs in worker threads."""
