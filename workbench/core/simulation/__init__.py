"""Simulation: a pipeline of stages and the step, run in simulated time."""
