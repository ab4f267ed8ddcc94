"""Verify: a graph's own nodes and what a plan puts in their place run on one batch, compared."""
