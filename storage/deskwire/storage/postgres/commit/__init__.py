"""The write path of a node: batches of jobs on Trio's thread, single jobs in worker threads.

`writer` chooses the jobs, `batcher` commits a batch, and `batch_run` runs its jobs in memory on fetched rows.
"""
