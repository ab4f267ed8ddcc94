"""What the tabs of a panel show of a run: as HTML, as columns for the browser, as figures."""
