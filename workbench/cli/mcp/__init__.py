"""`workbench mcp`: results for agents, over the Model Context Protocol on stdin and stdout."""
