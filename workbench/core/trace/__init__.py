"""The Trace value: its tables, its files, its metrics, and how recorded ops become one."""
