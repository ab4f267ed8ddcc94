"""Updates of tables that a grouped op may do: TensorFlow's, Keras's and Workbench's own."""
