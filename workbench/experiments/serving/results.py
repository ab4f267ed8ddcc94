"""ServingComparison: settings of a served model beside each other, as a value to show and save."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from workbench.core.optimizations import Optimizations
from workbench.display import Displayed
from workbench.errors import OptionError
from workbench.experiments.measurement.statistics import (
    Interval,
    Verdict,
    ratio_interval,
    verdict,
)
from workbench.experiments.serving import serving_file
from workbench.experiments.serving.points import Load, LoadPoint, RateAtLimit
from workbench.experiments.serving.table import serving_text


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServedVariant:
    """One setting of a served model, measured.

    Attributes:
      label: its name, such as "off" or "auto fused + inline executor".
      optimizations: where every toggle stands.
      points: one for each load and number of rows.
      rates_at_limit: one for each number of rows; empty where that was not searched.
      memory_bytes: what loading the model and its first requests took, all sessions together.
      sessions: how many sessions served it.
      steps_at_once: the most steps that ran at one time; 0 is any number.
      fused_ops: how many parts of its graph are fused.
      notes: what a reader should know, a sentence each.
    """

    label: str
    optimizations: Optimizations
    points: tuple[LoadPoint, ...]
    rates_at_limit: tuple[RateAtLimit, ...] = ()
    memory_bytes: int = 0
    sessions: int = 1
    steps_at_once: int = 0
    fused_ops: int = 0
    notes: tuple[str, ...] = ()

    def point(self, load: Load, rows: int) -> LoadPoint:
        """What a load gave.

        Raises:
          OptionError: that load was not measured.
        """
        for point in self.points:
            if point.load == load and point.rows == rows:
                return point
        raise OptionError(f"variant {self.label!r} has no load of {load.label} and {rows} rows")

    def rate_at_limit(self, rows: int) -> RateAtLimit | None:
        """The rate at the limit for requests of so many rows; None where it was not searched."""
        return next((each for each in self.rates_at_limit if each.rows == rows), None)


# Sums in another order change the last digits of float32, and no more; relative.
FLOAT32_ROUNDING = 1e-4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Receipt:
    """Whether a variant answers as the baseline does, on a sample of requests.

    Attributes:
      label: the variant.
      rows: of each request.
      requests: how many were compared; 0 where none was answered.
      bit_equal: whether all outputs are the same, bit by bit.
      largest_difference: of any number of any output, relative to the baseline's largest one in
        that output; None where texts, shapes or errors differ.
      output: the output with that difference; "" where all are equal. Of several the one that is
        the most times its `rounding` apart.
      rounding: the largest difference of that output that rounding makes, relative likewise.
    """

    label: str
    rows: int
    requests: int
    bit_equal: bool
    largest_difference: float | None = 0.0
    output: str = ""
    rounding: float = FLOAT32_ROUNDING

    @property
    def passed(self) -> bool:
        """Whether outputs were compared, and are equal but for rounding."""
        largest = self.largest_difference
        rounded = largest is not None and largest <= self.rounding
        return self.requests > 0 and (self.bit_equal or rounded)

    @property
    def differs(self) -> bool:
        """Whether outputs were compared, and are others."""
        return self.requests > 0 and not self.passed

    @property
    def words(self) -> str:
        """What it says, in a table."""
        if not self.requests:
            return "not compared"
        if self.bit_equal:
            return "bit-equal"
        if self.largest_difference is None:
            return f"other answers (in {self.output!r})"
        what = "equal but for rounding" if self.passed else "other answers"
        return f"{what} (by {self.largest_difference:.1e} in {self.output!r})"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServingRatio:
    """A variant over the baseline, of paired blocks.

    Attributes:
      label: the variant.
      interval: the mean ratio and its 95 % interval.
      verdict: what the interval lets one say, where more is better: "faster" or "slower". For
        latencies, where less is better, a ratio below 1 is "faster".
    """

    label: str
    interval: Interval
    verdict: Verdict


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServingComparison(Displayed):
    """Settings of one served model, measured side by side.

    Attributes:
      program: its name.
      signature: of the saved model, that was called.
      requests_from: where the requests came from, a sentence.
      variants: the baseline first.
      receipts: of each other variant, one for each number of rows.
      rounds: how often each variant had each load.
      environment: what it ran on.
      settings: of the measurement, to be shown.
      command: what reproduces it; "" where Python asked.
      taken_at: when it began, in UTC, as ISO 8601 writes it.
    """

    program: str
    signature: str
    requests_from: str
    variants: tuple[ServedVariant, ...]
    receipts: tuple[Receipt, ...]
    rounds: int
    environment: dict[str, Any]
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    command: str = ""
    taken_at: str = ""

    def __str__(self) -> str:
        """The table of its variants, as a terminal shows it."""
        return serving_text(self)

    @property
    def baseline(self) -> ServedVariant:
        """The variant that the others are compared with."""
        return self.variants[0]

    @property
    def loads(self) -> tuple[tuple[Load, int], ...]:
        """The loads that every variant had, each with its rows."""
        return tuple((point.load, point.rows) for point in self.baseline.points)

    def variant(self, label: str) -> ServedVariant:
        """A variant by its label.

        Raises:
          OptionError: there is no such variant.
        """
        for variant in self.variants:
            if variant.label == label:
                return variant
        labels = ", ".join(repr(variant.label) for variant in self.variants)
        raise OptionError(f"there is no variant {label!r}; expected one of {labels}")

    def per_s_ratio(self, label: str, load: Load, rows: int) -> ServingRatio | None:
        """A variant's requests a second over the baseline's; None where a block has no answer."""
        mine, base = (v.point(load, rows) for v in (self.variant(label), self.baseline))
        rates = [[block.per_s for block in point.blocks] for point in (mine, base)]
        return _ratio(label, rates[0], rates[1], more_is_better=True)

    def latency_ratio(
        self, label: str, load: Load, rows: int, percentile: int = 2
    ) -> ServingRatio | None:
        """A variant's latency over the baseline's, as `per_s_ratio`.

        Args:
          label, load, rows: which.
          percentile: number of the percentile in `points.PERCENTILES`; 2 is p99.
        """
        mine, base = (v.point(load, rows) for v in (self.variant(label), self.baseline))
        times = [
            [
                block.percentiles_ns[percentile] if block.percentiles_ns else 0.0
                for block in p.blocks
            ]
            for p in (mine, base)
        ]
        return _ratio(label, times[0], times[1], more_is_better=False)

    def rate_ratio(self, label: str, rows: int) -> ServingRatio | None:
        """A variant's rate at the limit over the baseline's; None where either was not found."""
        found = [v.rate_at_limit(rows) for v in (self.variant(label), self.baseline)]
        if found[0] is None or found[1] is None:
            return None
        return _ratio(label, found[0].rates, found[1].rates, more_is_better=True)

    def receipts_of(self, label: str) -> tuple[Receipt, ...]:
        """Whether a variant answers as the baseline does; empty of the baseline."""
        return tuple(receipt for receipt in self.receipts if receipt.label == label)

    def to_pandas(self) -> pd.DataFrame:
        """One row for each variant and load: rates, latencies in ms, ratios, CPU."""
        return pd.DataFrame(
            [self._row(variant, point) for variant in self.variants for point in variant.points]
        )

    def _row(self, variant: ServedVariant, point: LoadPoint) -> dict[str, Any]:
        latency, per_s = point.latency, point.per_s
        ratios: list[ServingRatio | None] = [None, None]
        if variant is not self.baseline:
            where = (variant.label, point.load, point.rows)
            ratios = [self.per_s_ratio(*where), self.latency_ratio(*where)]
        return {
            "variant": variant.label,
            "load": point.load.kind,
            "clients": point.load.clients,
            "rate": point.load.rate,
            "rows": point.rows,
            "requests_per_s": per_s.value if per_s else None,
            "p50_ms": latency.p50_ns.value / 1e6 if latency else None,
            "p90_ms": latency.p90_ns.value / 1e6 if latency else None,
            "p99_ms": latency.p99_ns.value / 1e6 if latency else None,
            "p999_ms": latency.p999_ns.value / 1e6 if latency else None,
            "ratio": ratios[0].interval.value if ratios[0] else None,
            "p99_ratio": ratios[1].interval.value if ratios[1] else None,
            "client_cpu_us": point.client_cpu_ns / 1e3,
            "server_cpu_us": point.server_cpu_ns / 1e3,
            "failed": point.failed,
            "client_is_limit": point.client_is_limit,
        }

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes it into a file of JSON.

        Raises:
          OutputError: it cannot be written; what was there before is kept.
        """
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return serving_file.write(fields, path)


def load_serving(path: str | os.PathLike[str]) -> ServingComparison:
    """Reads what `ServingComparison.save` wrote.

    Raises:
      DataError: no such file is there, it is damaged, or this version cannot read it.
    """
    return serving_file.read(path, ServingComparison, ServedVariant)


def _ratio(
    label: str, values: Sequence[float], baseline: Sequence[float], *, more_is_better: bool
) -> ServingRatio | None:
    """The ratio of rounds that both have; None where they are fewer than two, or one is empty."""
    pairs = list(zip(values, baseline, strict=False))
    if len(pairs) < 2 or not all(mine > 0 and base > 0 for mine, base in pairs):
        return None
    interval = ratio_interval([mine for mine, _ in pairs], [base for _, base in pairs])
    better = interval
    if not more_is_better:
        better = Interval(value=1 / interval.value, low=1 / interval.high, high=1 / interval.low)
    return ServingRatio(label=label, interval=interval, verdict=verdict(better))
