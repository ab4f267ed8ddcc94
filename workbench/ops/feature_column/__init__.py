"""DeepRec's feature columns on stock TensorFlow."""
