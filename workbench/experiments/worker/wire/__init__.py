"""Wire: what goes between a parent and its child processes: commands, failures, a cancel."""
