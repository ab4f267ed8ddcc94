"""Memory of a step: live bytes over time, and what holds them at the peak."""
