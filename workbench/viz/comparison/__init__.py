"""A comparison: answer, tables, chart and receipt."""
