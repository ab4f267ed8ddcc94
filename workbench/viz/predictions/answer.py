"""The answer of predictions: what would be best, whether clearly, and what is as good."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.core.what_if.predictions import Predicted, Predictions
from workbench.viz.predictions.withheld import sentence
from workbench.viz.style import format
from workbench.viz.style.plain_text import plain

Pieces = tuple[tuple[str, bool], ...]

_NOT_RUN = "; none of it was run."


def answer(predictions: Predictions) -> Pieces:
    """The answer.

    Returns:
      (text, strong) pieces.
    """
    others = [
        prediction
        for prediction in predictions.predicted
        if prediction.scenario != predictions.traced
    ]
    if not predictions.predicted:
        return _nothing(predictions)
    if not others:
        words = f": of {_name(predictions.traced.label)}, the traced setting, nothing differs."
        return (("No other setting is predicted", True), (words, False))
    clear = [prediction for prediction in others if prediction.low > 1]
    if not clear:
        return _none_is_faster(predictions, others)
    best = max(clear, key=lambda prediction: prediction.ratio)
    return (
        ("Best: ", False),
        (f"{plain(best.label)}, predicted {format.ratio(best.ratio)}", True),
        (f" {_against(predictions)} ({_interval(best)}), {_step(best)}{_NOT_RUN}", False),
        (_as_good(best, others) + _higher(best, others), False),
    )


def _nothing(predictions: Predictions) -> Pieces:
    reasons = list(dict.fromkeys(each.reason for each in predictions.withheld))
    if not reasons:
        return (("There is no setting to predict.", True),)
    count = len(predictions.withheld)
    of = f"Nothing is predicted of {format.integer(count)} setting{'s' * (count != 1)}"
    if len(reasons) > 1:
        return ((of, True), (", for the reasons below.", False))
    return ((f"{of}.", True), (f" {sentence(reasons[0])}", False))


def _none_is_faster(predictions: Predictions, others: Sequence[Predicted]) -> Pieces:
    traced = predictions.of(predictions.traced.label)
    takes = f", which takes {_step(traced)}" if traced else ""
    nearest = max(others, key=lambda each: each.ratio)
    return (
        ("No setting is predicted to be clearly faster", True),
        (f" than {_name(predictions.traced.label)}{takes}. The nearest is ", False),
        (f"{plain(nearest.label)}, predicted {format.ratio(nearest.ratio)}", False),
        (f" {_against(predictions)} ({_interval(nearest)}){_NOT_RUN}", False),
    )


def _as_good(best: Predicted, others: Sequence[Predicted]) -> str:
    """Others that may be as fast, and the simplest of them if that is simpler."""
    near = [each for each in others if each is not best and best.low <= each.ratio <= best.ratio]
    if not near:
        return ""
    lie = f"{format.integer(len(near))} others lie" if len(near) > 1 else "One other lies"
    simplest = min(near, key=lambda each: (toggles(each), -each.ratio))
    said = f" {lie} within its interval"
    if toggles(simplest) < toggles(best):
        which = "the simplest of them is" if len(near) > 1 else "it is simpler:"
        said += f"; {which} {plain(simplest.label)}, {format.ratio(simplest.ratio)}"
    return f"{said}."


def _higher(best: Predicted, others: Sequence[Predicted]) -> str:
    """The setting that comes out higher but is not clearly faster, where there is one."""
    first = max(others, key=lambda each: each.ratio)
    if first.ratio <= best.ratio:
        return ""
    ratio = format.ratio(first.ratio)
    return f" {plain(first.label)} comes out higher, {ratio}, but its interval includes 1×."


def toggles(predicted: Predicted) -> int:
    """How many optimizations it switches on."""
    on = predicted.scenario.optimizations
    return sum(
        each is not None for each in (on.stage, on.smart_stage, on.fused_embeddings, on.executor)
    )


def counts_samples(predictions: Predictions) -> bool:
    """Whether batches of several sizes are compared, which steps/s cannot be."""
    sizes = {each.scenario.batch_ratio for each in predictions.predicted}
    return len(sizes) > 1


def _against(predictions: Predictions) -> str:
    name = _name(predictions.traced.label)
    return f"the samples/s of {name}" if counts_samples(predictions) else f"as fast as {name}"


def _name(label: str) -> str:
    return "all off" if label == "off" else plain(label)


def _interval(predicted: Predicted) -> str:
    return f"95{format.NBSP}% interval {format.ratio_range(predicted.low, predicted.high)}"


def _step(predicted: Predicted) -> str:
    return f"{format.duration(predicted.step_ms * 1e6)} a step"
