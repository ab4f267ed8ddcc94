"""What a trace of a cluster says, as tables: view model, text, HTML."""
