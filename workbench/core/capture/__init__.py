"""Steps under a tracer → Trace."""
