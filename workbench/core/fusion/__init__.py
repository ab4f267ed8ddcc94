"""Fusion: what few ops, or other kernels, do of a finished graph, by rules under one contract."""
