"""What executors learned, as a table."""
