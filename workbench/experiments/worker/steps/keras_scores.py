"""Labels and scores of a Keras model's training step: what its loss is computed from."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from workbench.experiments.worker.steps.scored_steps import has_scores


def scored_step(model: Any) -> Callable[[Any], Any]:
    """The model's training step, which returns labels and scores beside its metrics.

    It returns the metrics alone where the model has several outputs, or another number of them than
    of labels.
    """

    def train_step(data: Any) -> Any:
        seen: list[tuple[Any, Any]] = []
        compute_loss = model.compute_loss

        def noted_loss(
            x: Any = None, y: Any = None, y_pred: Any = None, *others: Any, **named: Any
        ) -> Any:
            seen.append((y, y_pred))
            return compute_loss(x, y, y_pred, *others, **named)

        # Of the instance: the method of its class is there again afterwards.
        model.compute_loss = noted_loss
        try:
            returned = model.train_step(data)
        finally:
            del model.compute_loss
        fits = len(seen) == 1 and has_scores(*seen[0]) and _are_as_many(*seen[0])
        if not (fits and isinstance(returned, dict)):
            return returned
        return {"labels": seen[0][0], "scores": seen[0][1], **returned}

    return train_step


def _are_as_many(labels: Any, scores: Any) -> bool:
    """Whether two tensors have as many values, as far as their shapes tell."""
    return _sizes(labels.shape) == _sizes(scores.shape)


def _sizes(shape: Any) -> tuple[int, int]:
    """How many sizes of a shape are not known, and the product of the others."""
    sizes = shape.as_list()
    return sizes.count(None), math.prod(size for size in sizes if size is not None)
