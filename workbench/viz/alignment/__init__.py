"""Two traces aligned by node: where their difference comes from."""
