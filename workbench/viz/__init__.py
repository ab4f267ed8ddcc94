"""Draws results: one folder a view, with its model, its outlets and its styles."""
