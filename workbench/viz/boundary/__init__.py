"""The boundary of a stage: view model, widget, HTML."""
