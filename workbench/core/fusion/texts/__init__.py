"""Text in a finished graph: lines that become columns, and columns of words that become ids."""
