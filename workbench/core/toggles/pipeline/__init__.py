"""tf.data pipelines as they are read and changed: of a session's graph, and of eager datasets."""
