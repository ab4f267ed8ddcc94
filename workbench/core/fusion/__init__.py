"""Fusion: lookups and batch normalizations of a finished graph, found, and done by few ops."""
