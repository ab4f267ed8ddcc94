"""EmbeddingVariable: a table that grows by key, with its filters, slots and optimizers."""
