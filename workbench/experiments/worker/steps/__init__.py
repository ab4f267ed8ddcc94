"""Steps: what a child process runs: a session or a function, timed, traced or stubbed."""
