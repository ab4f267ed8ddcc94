"""SavedModels and MetaGraphDefs → the graphs that sessions have of them."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.python.saved_model.loader_impl import parse_saved_model

from workbench.core.tf_graph.saved_model_file import EITHER
from workbench.errors import OptionError, first_line

_SERVED = "serve"


def meta_graph_in(folder: str | os.PathLike[str]) -> meta_graph_pb2.MetaGraphDef:
    """The MetaGraphDef of a SavedModel that is served, or its only one; reads no variables.

    Args:
      folder: where the model is.

    Raises:
      OptionError: there is no such model.
    """
    path = os.fspath(folder)
    try:
        graphs = list(parse_saved_model(path).meta_graphs)
    except (OSError, UnicodeDecodeError, tf.errors.OpError) as error:
        raise OptionError(
            f"{path!r} is no folder of a SavedModel: {first_line(error)}; expected one with "
            f"{EITHER} in it"
        ) from None
    served = [each for each in graphs if _SERVED in each.meta_info_def.tags] or graphs
    if len(served) != 1:
        tags = "; ".join(", ".join(each.meta_info_def.tags) or "no tags" for each in graphs)
        raise OptionError(
            f"the SavedModel in {path!r} has {len(served)} graphs that may be meant, tagged "
            f"{tags or 'none'}; give the MetaGraphDef that tf.compat.v1.saved_model.load returns"
        )
    return served[0]


def imported(meta_graph: Any) -> tf.Graph:
    """The graph of a MetaGraphDef, with the names and attributes that a session has it with."""
    graph = tf.Graph()
    with graph.as_default():
        tf.compat.v1.import_graph_def(
            meta_graph.graph_def,
            name="",
            producer_op_list=meta_graph.meta_info_def.stripped_op_list,
        )
    return graph
