"""Checks: what holds for every rewrite of a graph, whatever rule made it."""
