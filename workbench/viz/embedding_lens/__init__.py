"""An embedding lens: the tables of a model, as bars of their time beside sizes and ids."""
