"""Formats, readers and generators of training data."""
