"""The parts of `tf.contrib` that feature columns need; the rest is refused by name."""

from workbench.compat.absent import absent as _absent
from workbench.compat.contrib import feature_column, layers

__all__ = ["feature_column", "layers"]
__getattr__ = _absent("tf.contrib", __all__)
