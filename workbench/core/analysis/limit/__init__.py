"""How far a step is from what the machine can do."""
