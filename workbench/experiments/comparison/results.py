"""Comparison: what an experiment found, as a value that can be shown, saved and read again."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from workbench.atomic_file import make_directory, writing
from workbench.core.analysis.alignment import Alignment, align
from workbench.core.analysis.memory.memory import memory
from workbench.core.boundary.boundary_file import boundary_from_bytes, boundary_to_bytes
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.trace import Trace, load_trace
from workbench.display import Displayed, charts, text_of
from workbench.errors import DataError, OptionError, PlanError
from workbench.experiments.measurement.bounds import Bound
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.experiments.measurement.statistics import Verdict

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_FORMAT_VERSION = 3
_FILE = "comparison.json"
# Leads into no other directory.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasuredVariant:
    """One setting of the program, measured.

    Attributes:
      label: its name, such as "off" or "stage".
      steps_per_s, low, high: mean over blocks and its 95 % interval.
      block_steps_per_s: one rate for each round.
      step_ms_median: median time of a step.
      trace: a few traced steps, taken after the measurement; None when none was asked for.
      plan: of its smart stage, with its boundary; None without one.
      notes: what a reader should know, a sentence each.
    """

    label: str
    steps_per_s: float
    low: float
    high: float
    block_steps_per_s: tuple[float, ...]
    step_ms_median: float
    trace: Trace | None = None
    plan: StagePlan | None = None
    notes: tuple[str, ...] = ()

    @functools.cached_property
    def step_peak_bytes(self) -> tuple[int, ...]:
        """Bytes of tensors that live at once at most, of each traced step; see `memory`.

        Empty where there is no trace, or where it does not know how large tensors are.
        """
        if self.trace is None or not self.trace.events["made_bytes"].any():
            return ()
        if not len(self.trace.edges) or not len(self.trace.steps()):
            return ()
        return tuple(memory(self.trace).step_peaks.tolist())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ratio:
    """A variant's steps/s over the baseline's: mean of paired blocks.

    Attributes:
      label: the variant.
      ratio, low, high: the mean and its 95 % interval.
      verdict: what the interval lets one say.
      predicted: what its plan had predicted; None where nothing was.
    """

    label: str
    ratio: float
    low: float
    high: float
    verdict: Verdict
    predicted: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison(Displayed):
    """Variants of one program, measured side by side.

    Attributes:
      program: its name.
      variants: the baseline first.
      baseline: label of the variant that the others are compared with.
      ratios: one for each other variant.
      equivalence: whether they train the same.
      bounds: what is possible at all, where that could be measured.
      environment: what it ran on.
      command: what reproduces it.
      settings: program, options and plan of the measurement; its "configuration" is what
        `workbench rerun` reads.
    """

    program: str
    variants: tuple[MeasuredVariant, ...]
    baseline: str
    ratios: tuple[Ratio, ...]
    equivalence: tuple[Equivalence, ...]
    bounds: tuple[Bound, ...]
    environment: dict[str, Any]
    command: str
    settings: dict[str, Any]

    def __str__(self) -> str:
        """The table of its variants, as a terminal shows it."""
        return text_of(self)

    def checks_of(self, label: str) -> tuple[Equivalence, ...]:
        """Whether a variant trains the same; empty where that was not compared."""
        return tuple(check for check in self.equivalence if check.label == label)

    def ratio_of(self, label: str) -> Ratio | None:
        """A variant's ratio to the baseline; None of the baseline itself."""
        return next((ratio for ratio in self.ratios if ratio.label == label), None)

    def to_pandas(self) -> pd.DataFrame:
        """One row for each variant: rate, ratio, prediction, verdict, equivalence, by label.

        `peak_tensor_bytes` is the mean over the traced steps of what lives at once at most.
        """
        rows = []
        for variant in self.variants:
            ratio, checks = self.ratio_of(variant.label), self.checks_of(variant.label)
            peaks = variant.step_peak_bytes
            rows.append(
                {
                    "variant": variant.label,
                    "steps_per_s": variant.steps_per_s,
                    "low": variant.low,
                    "high": variant.high,
                    "step_ms_median": variant.step_ms_median,
                    "ratio": ratio.ratio if ratio else None,
                    "ratio_low": ratio.low if ratio else None,
                    "ratio_high": ratio.high if ratio else None,
                    "ratio_predicted": ratio.predicted if ratio else None,
                    "verdict": ratio.verdict if ratio else "baseline",
                    "same_training": all(c.passed for c in checks) if checks else None,
                    "peak_tensor_bytes": statistics.fmean(peaks) if peaks else None,
                }
            )
        return pd.DataFrame(rows).set_index("variant")

    def plot(
        self,
        kind: str = "throughput",
        *,
        variants: Sequence[str] | None = None,
        theme: str | None = None,
    ) -> Figure:
        """A plotly figure of the comparison.

        Args:
          kind: "throughput" draws steps/s of each variant with its 95 % interval and what was
            predicted of it; "blocks" the steps/s of each block, in the order they ran.
          variants: labels of those to draw; None draws all.
          theme: "light" or "dark"; None takes `plotly.io.templates.default` where one was set.

        Raises:
          OptionError: another kind or theme, or no such variant.
        """
        return charts().of_comparison(self, kind, variants, theme)

    def align(self, a: str, b: str) -> Alignment:
        """The traces of two variants, aligned by the nodes of their graphs; see `workbench.align`.

        Args:
          a, b: labels of the variants, as in "off" and "stage".

        Raises:
          OptionError: there is no such variant, or it has no trace.
        """
        return align(self._trace_of(a), self._trace_of(b), labels=(a, b))

    def _trace_of(self, label: str) -> Trace:
        traces = {variant.label: variant.trace for variant in self.variants}
        if label not in traces:
            labels = ", ".join(traces)
            raise OptionError(f"there is no variant {label!r}; expected one of {labels}")
        trace = traces[label]
        if trace is None:
            raise OptionError(f"variant {label!r} has no trace; compare with trace_steps above 0")
        return trace

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Writes the comparison, its traces and its boundaries into a directory.

        It is made if needed.

        Raises:
          OutputError: it cannot be written; what was saved there before is kept.
        """
        directory = make_directory(directory)
        with writing(directory), tempfile.TemporaryDirectory(prefix=".saving-", dir=directory) as d:
            new = Path(d)
            traces, boundaries = {}, {}
            for number, variant in enumerate(self.variants):
                if variant.trace is not None:
                    traces[variant.label] = f"trace-{number}.parquet"
                    variant.trace.save(new / traces[variant.label])
                if variant.plan is not None and variant.plan.boundary is not None:
                    boundaries[variant.label] = f"boundary-{number}.json.gz"
                    content = boundary_to_bytes(variant.plan.boundary)
                    (new / boundaries[variant.label]).write_bytes(content)
            document = self._to_json(traces, boundaries)
            (new / _FILE).write_text(json.dumps(document, indent=1) + "\n")
            # The index last: it names files that are complete.
            for file in (*traces.values(), *boundaries.values(), _FILE):
                os.replace(new / file, directory / file)
        return directory

    def _to_json(self, traces: dict[str, str], boundaries: dict[str, str]) -> dict[str, Any]:
        """What the index holds.

        Args:
          traces, boundaries: names of files by label of their variant.
        """
        content = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("variants", "ratios", "equivalence", "bounds")
        }
        content["variants"] = [
            {
                **{f.name: getattr(v, f.name) for f in dataclasses.fields(v)},
                "trace": traces.get(v.label),
                "plan": json.loads(v.plan.to_json()) if v.plan else None,
                "boundary": boundaries.get(v.label),
            }
            for v in self.variants
        ]
        for name in ("ratios", "equivalence", "bounds"):
            content[name] = [dataclasses.asdict(item) for item in getattr(self, name)]
        return {"format_version": _FORMAT_VERSION, **content}


def load_comparison(directory: str | os.PathLike[str]) -> Comparison:
    """Reads what `Comparison.save` wrote, traces and boundaries included.

    Raises:
      DataError: no comparison is there, this version cannot read it, or a boundary is damaged.
      TraceError: one of its traces is broken.
    """
    path = Path(directory) / _FILE
    try:
        content = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(
            f"{directory}: holds no {_FILE}; give a directory that `workbench compare` wrote"
        ) from None
    except ValueError as error:
        raise DataError(f"{path}: is not a saved comparison: {error}") from None
    version = content.pop("format_version", None) if isinstance(content, dict) else None
    if version != _FORMAT_VERSION:
        raise DataError(f"{path}: {_wrong_version(version, content)}")
    try:
        return _from_json(content, path.parent)
    except (KeyError, TypeError, AttributeError, PlanError) as error:
        raise DataError(f"{path}: is not a saved comparison: {error}") from None


def _wrong_version(version: Any, content: Any) -> str:
    """Why a comparison of another format version is not read, and what to do."""
    text = f"was saved in format {version!r}, and this Workbench reads {_FORMAT_VERSION}"
    if not isinstance(version, int):
        return f"is not a saved comparison: it {text}"
    if version > _FORMAT_VERSION:
        return f"{text}; update it (pip install --upgrade recsys-workbench)"
    command = content.get("command")
    return f"{text}; measure again{f' with: {command}' if command else ''}"


def _from_json(content: dict[str, Any], directory: Path) -> Comparison:
    variants = []
    for variant in content.pop("variants"):
        file = variant.pop("trace")
        plan = _plan_from(variant.pop("plan"), variant.pop("boundary"), directory)
        variants.append(
            MeasuredVariant(
                **{
                    **variant,
                    "block_steps_per_s": tuple(variant["block_steps_per_s"]),
                    "notes": tuple(variant["notes"]),
                },
                trace=load_trace(_own_file(directory, file)) if file else None,
                plan=plan,
            )
        )
    return Comparison(
        variants=tuple(variants),
        ratios=tuple(Ratio(**ratio) for ratio in content.pop("ratios")),
        equivalence=tuple(map(_check_from, content.pop("equivalence"))),
        bounds=tuple(Bound(**bound) for bound in content.pop("bounds")),
        **content,
    )


def _check_from(check: dict[str, Any]) -> Equivalence:
    lists = {name: tuple(check.pop(name, ())) for name in ("losses", "baseline_losses")}
    return Equivalence(**{**check, **lists})


def _plan_from(
    document: dict[str, Any] | None, file: str | None, directory: Path
) -> StagePlan | None:
    """A variant's plan with its boundary, which stands in a file of its own."""
    if document is None:
        return None
    plan = StagePlan.from_json(json.dumps(document))
    if file is None:
        return plan
    path = _own_file(directory, file)
    try:
        return dataclasses.replace(plan, boundary=boundary_from_bytes(path.read_bytes()))
    except (OSError, DataError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{path}: {reason}") from None


def _own_file(directory: Path, name: Any) -> Path:
    """A file of the comparison's own directory, which a name in its index must not lead out of."""
    if not isinstance(name, str) or not _PLAIN.fullmatch(name):
        raise DataError(
            f"{directory / _FILE}: names the file {name!r}; expected one of its own directory"
        )
    return directory / name
