"""Predictions as a sorted list with intervals, and beside what was then measured."""
