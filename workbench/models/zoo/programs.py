"""Programs of the six models, to run and to compare; loads no TensorFlow.

The graph of a model stands in the module of its name, which only a child process imports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.experiments.program.program import Program
from workbench.models.building.model_program import model_program
from workbench.models.zoo.options import (
    DeepFmOptions,
    DienOptions,
    DinOptions,
    DlrmOptions,
    DssmOptions,
    WdlOptions,
)

if TYPE_CHECKING:
    from workbench.models.building.graph_model import GraphModel


def dlrm_program(options: DlrmOptions) -> Program:
    """DLRM as a program, with an epoch to compare batches over and both parts of its bound."""
    return model_program("dlrm", options, _dlrm_graph)


def deepfm_program(options: DeepFmOptions) -> Program:
    """DeepFM as a program, with an epoch to compare batches over and both parts of its bound."""
    return model_program("deepfm", options, _deepfm_graph)


def wdl_program(options: WdlOptions) -> Program:
    """Wide & Deep as a program, with an epoch to compare batches over and both parts of its
    bound."""
    return model_program("wdl", options, _wdl_graph)


def dssm_program(options: DssmOptions) -> Program:
    """DSSM as a program, with an epoch to compare batches over and both parts of its bound."""
    return model_program("dssm", options, _dssm_graph)


def din_program(options: DinOptions) -> Program:
    """DIN as a program, with an epoch to compare batches over and both parts of its bound."""
    return model_program("din", options, _din_graph)


def dien_program(options: DienOptions) -> Program:
    """DIEN as a program, with an epoch to compare batches over and both parts of its bound."""
    return model_program("dien", options, _dien_graph)


def _dlrm_graph() -> GraphModel:
    from workbench.models.zoo import dlrm

    return dlrm.MODEL


def _deepfm_graph() -> GraphModel:
    from workbench.models.zoo import deepfm

    return deepfm.MODEL


def _wdl_graph() -> GraphModel:
    from workbench.models.zoo import wdl

    return wdl.MODEL


def _dssm_graph() -> GraphModel:
    from workbench.models.zoo import dssm

    return dssm.MODEL


def _din_graph() -> GraphModel:
    from workbench.models.zoo import din

    return din.MODEL


def _dien_graph() -> GraphModel:
    from workbench.models.zoo import dien

    return dien.MODEL
