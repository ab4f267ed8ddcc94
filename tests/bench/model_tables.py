"""Tables of the bench of models: tidy rows of its outcomes, and Markdown of the rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from tests.bench import published
from tests.bench.model_jobs import COMPUTE, LATENCY, STAGED_MODELS, Outcome
from workbench.experiments.measurement.statistics import ratio_interval

_NAMES = {"deepfm": "DeepFM"}
_FIGURES = (
    "steps_per_s", "low", "high", "step_ms_median", "ratio", "ratio_low", "ratio_high",
    "ratio_predicted", "verdict", "same_training",
)  # fmt: skip
_TO_STAGE = ("to_stage", "to_stage_low", "to_stage_high")
_LONGEST = 160
_OTHER = "Measured on another machine with other software; beside ours, not against it."


def rows_of(outcome: Outcome, **more: Any) -> list[dict[str, Any]]:
    """One row for each variant of an outcome, with equal columns; a failed one has a failure.

    Args:
      outcome: of one job.
      **more: columns that are the same in every row.
    """
    job, found = outcome.job, outcome.found
    table = found.to_pandas() if found is not None else None
    rows = []
    for toggle, label in zip(("", *job.toggles), job.labels, strict=True):
        figures = dict.fromkeys((*_FIGURES, *_TO_STAGE))
        if table is not None:
            figures |= {name: table.loc[label, name] for name in _FIGURES}
        if found is not None and label == "smart stage":
            figures |= _to_stage(found)
        rows.append(
            {
                **more,
                "model": job.model,
                "input": job.input_kind,
                "input_latency_ms": outcome.latency_ms,
                "toggle": toggle,
                "variant": label,
                **figures,
                "rounds": found.settings["rounds"] if found is not None else None,
                "batch_size": found.settings.get("batch_size") if found is not None else None,
                "rows": found.settings.get("rows") if found is not None else None,
                "seconds": outcome.seconds,
                "failure": outcome.failure or None,
            }
        )
    return rows


def _to_stage(found: Any) -> dict[str, float]:
    rates = {variant.label: variant.block_steps_per_s for variant in found.variants}
    ratio = ratio_interval(rates["smart stage"], rates["stage"])
    return dict(zip(_TO_STAGE, (ratio.value, ratio.low, ratio.high), strict=True))


def frame_of(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The rows as a table with the same types whatever failed."""
    frame = pd.DataFrame(rows)
    texts = ("model", "input", "toggle", "variant", "verdict", "failure", "run")
    whole = ("rounds", "batch_size", "rows")
    for name in frame.columns:
        if name == "same_training":
            frame[name] = frame[name].astype("boolean")
        elif name in whole:
            frame[name] = frame[name].astype("Int64")
        else:
            frame[name] = frame[name].astype("string" if name in texts else "float64")
    return frame


def markdown(frame: pd.DataFrame) -> str:
    """The three tables, with what DeepRec publishes beside them."""
    parts = [_smart_stage(frame), _fusions(frame), _executors(frame)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _smart_stage(frame: pd.DataFrame) -> str:
    heads = (
        "model", "input", "batch", "un-staged, steps/s", "stage", "smart stage",
        "predicted for it", "smart stage to stage", "DeepRec, A100: off → smart stage, _gpu",
        "DeepRec, CPU",
    )  # fmt: skip
    lines = []
    for model in (m for m in _models(frame) if m in STAGED_MODELS):
        for kind in (COMPUTE, LATENCY):
            found = _variants(frame, model, kind)
            if "stage" not in found:
                continue
            smart = found["smart stage"]
            waits = f", each batch waits {found['off'].input_latency_ms:.1f} ms"
            said = kind + (waits if found["off"].input_latency_ms else "")
            ours = [
                _rate(found["off"]),
                _ratio(found["stage"]),
                _ratio(smart),
                _number(smart.ratio_predicted),
                _interval(smart.to_stage, smart.to_stage_low, smart.to_stage_high),
            ]
            theirs = _published_stage(model) if kind == COMPUTE else ("", "")
            lines.append(_line(model, said, found["off"], ours, theirs))
    return _table("Stage and smart stage", heads, lines, published.SMART_STAGE_SOURCE)


def _fusions(frame: pd.DataFrame) -> str:
    heads = ("model", "input", "batch", "off, steps/s", "fused V1", "fused V2", "DeepRec, A100")
    lines = []
    for model in _models(frame):
        found = _variants(frame, model, COMPUTE)
        if "fused V1" in found:
            ours = [_rate(found["off"]), _ratio(found["fused V1"]), _ratio(found["fused V2"])]
            lines.append(_line(model, COMPUTE, found["off"], ours, (_published_fused(model),)))
    return _table("Fused embedding lookups", heads, lines, published.FUSED_SOURCE)


def _executors(frame: pd.DataFrame) -> str:
    heads = ("model", "input", "batch", "stock, steps/s", "inline", "cost model")
    lines = []
    for model in _models(frame):
        found = _variants(frame, model, COMPUTE)
        if "inline executor" in found:
            ours = [_rate(found["off"])]
            ours += [_ratio(found[name]) for name in ("inline executor", "cost model executor")]
            lines.append(_line(model, COMPUTE, found["off"], ours, ()))
    return _table("Executors", heads, lines, published.EXECUTOR_SOURCE, other=False)


def _models(frame: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(frame["model"]))


def _variants(frame: pd.DataFrame, model: str, kind: str) -> dict[str, Any]:
    rows = frame[(frame["model"] == model) & (frame["input"] == kind)]
    return {row.variant: row for row in rows.itertuples(index=False)}


def _line(
    model: str, said: str, off: Any, ours: Sequence[str], theirs: Iterable[str]
) -> tuple[str, ...]:
    if isinstance(off.failure, str):
        ours = [f"not measured: {_short(off.failure)}", *[""] * (len(ours) - 1)]
    batch = "" if pd.isna(off.batch_size) else str(off.batch_size)
    return (_NAMES.get(model, model.upper()), said, batch, *ours, *theirs)


def _short(text: str) -> str:
    text = text.replace("|", "\\|")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _table(
    title: str,
    heads: Sequence[str],
    lines: Sequence[Sequence[str]],
    source: str,
    *,
    other: bool = True,
) -> str:
    if not lines:
        return ""
    rows = [heads, ["---"] * len(heads), *lines]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    note = f"{source} {_OTHER}" if other else source
    return f"### {title}\n\nRatios to off, with 95 % intervals.\n\n{table}\n\n{note}"


def _rate(row: Any) -> str:
    if _missing(row.steps_per_s):
        return ""
    return f"{row.steps_per_s:.3g} ({row.low:.3g}–{row.high:.3g})"


def _ratio(row: Any) -> str:
    return _interval(row.ratio, row.ratio_low, row.ratio_high)


def _interval(value: float, low: float, high: float) -> str:
    return "" if _missing(value) else f"{value:.2f}× ({low:.2f}–{high:.2f})"


def _number(value: float) -> str:
    return "" if _missing(value) else f"{value:.2f}×"


def _missing(value: Any) -> bool:
    return value is None or value is pd.NA or math.isnan(value)


def _published_stage(model: str) -> tuple[str, str]:
    found = published.SMART_STAGE[model]
    smart, gpu = found.smart_stage / found.off, found.smart_stage_gpu / found.off
    gpu_only = f"{found.off:.1f} → {found.smart_stage:.1f} ({smart:.2f}×), "
    gpu_only += f"{found.smart_stage_gpu:.1f} ({gpu:.2f}×)"
    if model not in published.SMART_STAGE_CPU:
        return gpu_only, ""
    off, on = published.SMART_STAGE_CPU[model]
    return gpu_only, f"{off:.0f} → {on:.0f} ({on / off:.2f}×)"


def _published_fused(model: str) -> str:
    found = published.FUSED.get(model)
    if found is None:
        return ""
    ratio = found.off_ms / found.fused_ms
    return f"{found.setting}: {found.off_ms:.1f} → {found.fused_ms:.1f} ms ({ratio:.2f}×)"
