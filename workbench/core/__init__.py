"""From a graph or a trace to numbers, plans and rewritten graphs; draws nothing."""
