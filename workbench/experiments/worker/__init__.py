"""The child process that builds, runs and traces one variant of a program."""
