"""Settings that race each other in child processes: who runs, in which process, and the rounds."""
