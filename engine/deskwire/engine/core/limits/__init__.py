"""Rate limits and fair shares, so that no caller can starve the others."""
