"""Recommender models to measure, and the data they read."""
