"""Modes: what of the product runs underneath another project's tests."""

from __future__ import annotations

import dataclasses

STOCK = "stock"
_POLICIES = ("normal", "inline", "cost_model")
_VERSIONS = ("v1", "v2", "grouped")
_FUSION = "fusion"
_MODEL_PARTS = ("fuse_model", "smart_stage")
SESSION_MODES = (*_POLICIES, _FUSION, "fusion+inline", *_VERSIONS)
MODEL_MODES = _MODEL_PARTS


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mode:
    """One way to run a test.

    Attributes:
      name: the parts, joined by "+"; "stock" is TensorFlow alone.
      policy: executor policy of sessions and functions, or None.
      fuses_graphs: whether sessions get a fusion plan for their graph.
      version: what `fused_embeddings` is given where a test builds a safe lookup, or None.
      fuses_models, stages_models: what is done to a Keras model after each `compile`.
    """

    name: str
    policy: str | None = None
    fuses_graphs: bool = False
    version: str | None = None
    fuses_models: bool = False
    stages_models: bool = False

    @property
    def policy_arguments(self) -> dict[str, int]:
        """Arguments of the policy; tests run few steps, so the cost model learns from the first."""
        return {"start_step": 1, "stop_step": 2} if self.policy == "cost_model" else {}


def mode_named(name: str) -> Mode:
    """The mode of a name, such as "fusion+inline".

    Raises:
      ValueError: a part of the name is unknown.
    """
    parts = [] if name == STOCK else name.split("+")
    known = (*_POLICIES, _FUSION, *_VERSIONS, *_MODEL_PARTS)
    unknown = [part for part in parts if part not in known]
    if unknown:
        raise ValueError(f"mode {name!r} has the part {unknown[0]!r}; expected {', '.join(known)}")
    return Mode(
        name=name,
        policy=next((part for part in parts if part in _POLICIES), None),
        fuses_graphs=_FUSION in parts,
        version=next((part for part in parts if part in _VERSIONS), None),
        fuses_models="fuse_model" in parts,
        stages_models="smart_stage" in parts,
    )
