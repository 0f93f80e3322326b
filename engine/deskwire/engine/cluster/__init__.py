"""The nodes of one installation: membership, leader election, and the barrier for cache invalidation."""
