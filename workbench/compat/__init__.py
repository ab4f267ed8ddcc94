"""DeepRec's spelling over stock TensorFlow."""
