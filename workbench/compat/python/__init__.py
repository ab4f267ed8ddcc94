"""The modules of `tensorflow.python` that DeepRec's scripts import."""
