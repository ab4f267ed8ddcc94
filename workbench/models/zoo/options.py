"""Options and programs of the six models; loads no TensorFlow.

The graph of a model stands in the module of its name, which only a child process imports.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from workbench.experiments.program.program import Program
from workbench.models.building.model_program import ModelOptions, model_program
from workbench.models.data.columns import require_columns
from workbench.models.data.taobao import DSSM_TABLE, SEQUENCE_NEGATIVE_TABLE, SEQUENCE_TABLE

if TYPE_CHECKING:
    from workbench.models.building.graph_model import GraphModel


@dataclasses.dataclass(frozen=True, kw_only=True)
class DlrmOptions(ModelOptions):
    """What a DLRM run reads and how it trains; the learning rate is Adagrad's."""


def dlrm_program(options: DlrmOptions) -> Program:
    """DLRM as a program, with an epoch to compare batches over and both parts of its bound."""
    return model_program("dlrm", options, _dlrm_graph)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeepFmOptions(ModelOptions):
    """What a DeepFM run reads and how it trains; the learning rate is Adam's.

    Attributes:
      table_learning_rate: of the tables' Adagrad.
    """

    learning_rate: float = 0.001
    table_learning_rate: float = 0.05


def deepfm_program(options: DeepFmOptions) -> Program:
    """DeepFM as a program, with an epoch to compare batches over and both parts of its bound."""
    return model_program("deepfm", options, _deepfm_graph)


@dataclasses.dataclass(frozen=True, kw_only=True)
class WdlOptions(ModelOptions):
    """What a Wide & Deep run reads and how it trains.

    Attributes:
      learning_rate: of the deep part's Adam.
      wide_learning_rate: of the wide part's FTRL.
      table_learning_rate: of the Adagrad of the deep part's tables.
    """

    wide_learning_rate: float = 0.2
    table_learning_rate: float = 0.05


def wdl_program(options: WdlOptions) -> Program:
    """Wide & Deep as a program, with an epoch to compare batches over and both parts of its
    bound."""
    return model_program("wdl", options, _wdl_graph)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DssmOptions(ModelOptions):
    """What a DSSM run reads and how it trains.

    Attributes:
      data: a `DSSM_TABLE`.
      learning_rate: of Adam.
      table_learning_rate: of Adagrad, which trains the tables.
    """

    batch_size: int = 4096
    learning_rate: float = 0.001
    table_learning_rate: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_columns(self.data, DSSM_TABLE, "DSSM")


def dssm_program(options: DssmOptions) -> Program:
    """DSSM as a program, with an epoch to compare batches over and both parts of its bound."""
    return model_program("dssm", options, _dssm_graph)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DinOptions(ModelOptions):
    """What a DIN run reads and how it trains.

    Attributes:
      data: a `SEQUENCE_TABLE`; columns behind it are not read.
      learning_rate: of Adam.
      table_learning_rate: of Adagrad, which trains the tables.
    """

    learning_rate: float = 0.001
    table_learning_rate: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_columns(self.data, SEQUENCE_TABLE, "DIN")


def din_program(options: DinOptions) -> Program:
    """DIN as a program, with an epoch to compare batches over and both parts of its bound."""
    return model_program("din", options, _din_graph)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DienOptions(ModelOptions):
    """What a DIEN run reads and how it trains.

    Attributes:
      data: a `SEQUENCE_NEGATIVE_TABLE`.
      learning_rate: of Adam.
      table_learning_rate: of Adagrad, which trains the tables.
    """

    learning_rate: float = 0.001
    table_learning_rate: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_columns(self.data, SEQUENCE_NEGATIVE_TABLE, "DIEN")


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
