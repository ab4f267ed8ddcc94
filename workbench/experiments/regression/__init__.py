"""Does it still hold: a saved comparison or a report against a new measurement, and the gate."""
