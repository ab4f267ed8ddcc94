"""Graphs as arrays: nodes, edges, op types, orders and critical paths."""
