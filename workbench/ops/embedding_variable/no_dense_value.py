"""What an EmbeddingVariable is not: a variable with a dense value."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from workbench.errors import UnsupportedError

# Stock optimizers make their slots under `_shared_name`; a Saver saves `_graph_element`.
_VALUES = ("initial_value", "initializer", "_shared_name")
_CALLS = (
    *("value", "read_value", "read_value_no_copy", "eval", "numpy", "gather_nd", "count_up_to"),
    *("is_initialized", "initialized_value", "load", "_dense_var_to_tensor"),
    *("assign", "assign_add", "assign_sub", "batch_scatter_update", "__iter__", "__array__"),
    *(f"scatter_{kind}" for kind in ("add", "div", "max", "min", "mul", "sub", "update")),
    *(f"scatter_nd_{kind}" for kind in ("add", "max", "min", "sub", "update")),
)
_Class = TypeVar("_Class", bound=type)


def without_dense_value(variable: _Class) -> _Class:
    """Class decorator: all that would read or set the whole value raises UnsupportedError.

    TensorFlow takes the class for a resource variable. What the class defines itself stays.
    """
    own = vars(variable)
    for name in _VALUES:
        if name not in own:
            setattr(variable, name, property(_refuse))
    for name in _CALLS:
        if name not in own:
            setattr(variable, name, _refuse)
    # Stock lookups ask of which graph it is.
    variable._as_graph_element = lambda self: self.handle  # type: ignore[attr-defined]
    # The constructor of TensorFlow's class sets it.
    variable._graph_element = property(_refuse, lambda self, value: None)  # type: ignore[attr-defined]
    return variable


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    del args, kwargs
    raise UnsupportedError(
        f"EmbeddingVariable {self.name.split(':')[0]!r} has no dense value. Read rows with "
        "sparse_read(keys) or an embedding lookup; train it with GradientDescentOptimizer, "
        "AdagradOptimizer, AdamOptimizer or FtrlOptimizer of workbench.ops "
        "(tf.train of workbench.compat.v1); save it with a tf.compat.v1.train.Saver() of all "
        "saveable objects"
    )
