"""A session in a directory and back: its settings, the graphs it learned, its runs."""

SESSION_FILE = "session.json"
