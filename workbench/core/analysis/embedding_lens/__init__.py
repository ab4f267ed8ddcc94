"""Embedding tables of a model: how they are used, how large they are, what their lookups take."""
