"""Interleaved blocks, statistics, bounds and equivalence checks."""
