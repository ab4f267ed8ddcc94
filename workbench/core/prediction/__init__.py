"""A trace and a candidate → the time of a step."""
