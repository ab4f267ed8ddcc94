"""The ConfigProto of a served model's sessions: threads, executor, toggles, and its fusion."""

from __future__ import annotations

from typing import Any

from workbench.core.optimizations import Optimizations
from workbench.errors import OptionError
from workbench.experiments.program.program import Built
from workbench.experiments.serving.toggles import NOTHING_TO_FUSE
from workbench.experiments.worker.steps.session_config import wished_config


def model_config(meta_graph: Any, signature: str, optimizations: Optimizations) -> tuple[Any, int]:
    """The config of a setting, and how many parts of the graph it fuses.

    Args:
      meta_graph: of the SavedModel.
      signature: name of the one that requests call.
      optimizations: the setting.

    Raises:
      OptionError: auto_fused finds nothing to fuse.
    """
    config = wished_config(Built(train_op=None), optimizations, recorded=False)
    if not optimizations.fuses_graph:
        return config, 0
    from workbench.core.fusion.plan import plan_fusion
    from workbench.core.session.rewrite import apply

    # A request is all that is fetched, so features that are fed apart may be one op.
    plan = plan_fusion(meta_graph, signature=signature)
    if not plan.count:
        stays = "".join(f"; {each.name!r} stays: {each.reason}" for each in plan.refusals[:1])
        raise OptionError(f"{NOTHING_TO_FUSE} in the graph of this SavedModel{stays}")
    return apply(plan, config), plan.count
