"""Colors, number formats, page style and scripts that all views share."""
