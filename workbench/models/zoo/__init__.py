"""The six models, one module each."""
