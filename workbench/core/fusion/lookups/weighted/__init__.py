"""Lookups with weights: what they look like, and the gradients of tables and weights."""
