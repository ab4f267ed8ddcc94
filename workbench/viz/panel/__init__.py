"""The panel: toggles, runs, and every view of a run as tabs."""
