"""Ops of a finished graph that other kernels do."""
