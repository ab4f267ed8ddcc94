"""The timeline of a trace: view model, widget, HTML."""
