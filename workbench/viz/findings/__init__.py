"""Findings of a trace as a list: cost, evidence, what mends it."""
