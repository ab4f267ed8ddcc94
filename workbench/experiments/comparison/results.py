"""Comparison: what an experiment found, as a value that can be shown, saved and read again."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from workbench.core.analysis.alignment import Alignment, align
from workbench.display import Displayed, charts, text_of
from workbench.experiments.comparison import comparison_file
from workbench.experiments.comparison.measured import MeasuredVariant, Ratio, trace_of_variant
from workbench.experiments.measurement.bounds import Bound
from workbench.experiments.measurement.equivalence import Equivalence

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


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
      failed: why settings with a choice of a toggle were left out, a sentence each, by label.
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
    failed: dict[str, str] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        """The table of its variants, as a terminal shows it."""
        return text_of(self)

    def checks_of(self, label: str) -> tuple[Equivalence, ...]:
        """Whether a variant trains the same; empty where that was not compared."""
        return tuple(check for check in self.equivalence if check.label == label)

    def trains_the_same(self, label: str) -> bool | None:
        """Whether all checks of a variant passed; None where there was none."""
        checks = self.checks_of(label)
        return all(check.passed for check in checks) if checks else None

    def ratio_of(self, label: str) -> Ratio | None:
        """A variant's ratio to the baseline; None of the baseline itself."""
        return next((ratio for ratio in self.ratios if ratio.label == label), None)

    def to_pandas(self) -> pd.DataFrame:
        """One row for each variant: rate, ratio, prediction, verdict, equivalence, by label.

        `peak_tensor_bytes` is the mean over the traced steps of what lives at once at most.
        """
        rows = []
        for variant in self.variants:
            ratio = self.ratio_of(variant.label)
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
                    "same_training": self.trains_the_same(variant.label),
                    "peak_tensor_bytes": variant.peak_tensor_bytes,
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
            predicted of it. With "blocks" it draws the steps/s of each block, in the order they
            ran.
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
        first, second = (trace_of_variant(self.variants, label) for label in (a, b))
        return align(first, second, labels=(a, b))

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Writes the comparison, its traces and its boundaries into a directory.

        It is made if needed.

        Raises:
          OutputError: it cannot be written; what was saved there before is kept.
        """
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return comparison_file.write(fields, directory)


def load_comparison(directory: str | os.PathLike[str]) -> Comparison:
    """Reads what `Comparison.save` wrote, traces and boundaries included.

    Raises:
      DataError: no comparison is there, this version cannot read it, or a boundary is damaged.
      TraceError: one of its traces is broken.
    """
    return comparison_file.read(directory, Comparison)
