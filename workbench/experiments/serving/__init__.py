"""Measures how fast a saved model answers requests: clients, loads, latencies, rates."""
