"""What `workbench` can be told to do: a file for each command."""
