"""Results as plotly figures, which users restyle, hover and export."""
