"""A trace → why its steps take as long as they do."""
