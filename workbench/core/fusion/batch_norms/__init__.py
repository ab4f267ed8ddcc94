"""Batch normalizations of a finished graph, as TensorFlow builds them, that one op does each."""
