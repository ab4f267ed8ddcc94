"""A served model as a JSON document, for scripts and agents."""

from __future__ import annotations

import dataclasses
from typing import Any

from workbench.experiments.measurement.statistics import Interval
from workbench.experiments.serving.points import LoadPoint, RateAtLimit
from workbench.experiments.serving.results import (
    ServedVariant,
    ServingComparison,
    ServingRatio,
)
from workbench.viz.serving.answer import answers_alike
from workbench.viz.serving.view import serving_view
from workbench.viz.style.plain_text import plain

# Of a nanosecond.
_MS = 1e-6


def serving_document(comparison: ServingComparison) -> dict[str, Any]:
    """The answer in a sentence, every number of every load, the receipts and the findings."""
    view = serving_view(comparison)
    return {
        "program": comparison.program,
        "signature": comparison.signature,
        "requests_from": comparison.requests_from,
        "answer": plain("".join(text for text, _ in view.sentence)),
        "next": plain(view.next_step),
        "baseline": comparison.baseline.label,
        "rounds": comparison.rounds,
        "variants": [_variant(comparison, variant) for variant in comparison.variants],
        "receipts": [
            {**dataclasses.asdict(one), "passed": one.passed} for one in comparison.receipts
        ],
        "findings": [dataclasses.asdict(row) for row in view.findings],
        "environment": comparison.environment,
        "command": comparison.command,
        "taken_at": comparison.taken_at,
    }


def _variant(comparison: ServingComparison, variant: ServedVariant) -> dict[str, Any]:
    return {
        "label": variant.label,
        "sessions": variant.sessions,
        "steps_at_once": variant.steps_at_once or None,
        "fused_ops": variant.fused_ops,
        "memory_bytes": variant.memory_bytes or None,
        "same_answers": answers_alike(comparison, variant.label),
        "loads": [_point(comparison, variant, point) for point in variant.points],
        "rates_at_limit": [_at_limit(comparison, variant, one) for one in variant.rates_at_limit],
        "notes": variant.notes,
    }


def _point(
    comparison: ServingComparison, variant: ServedVariant, point: LoadPoint
) -> dict[str, Any]:
    latency, where = point.latency, (variant.label, point.load, point.rows)
    per_s = p99 = None
    if variant is not comparison.baseline:
        per_s, p99 = comparison.per_s_ratio(*where), comparison.latency_ratio(*where)
    return {
        "load": point.load.kind,
        "clients": point.load.clients,
        "arrivals_per_s": point.load.rate,
        "rows": point.rows or None,
        "requests_per_s": _interval(point.per_s),
        "p50_ms": _interval(latency.p50_ns.scaled(_MS) if latency else None),
        "p90_ms": _interval(latency.p90_ns.scaled(_MS) if latency else None),
        "p99_ms": _interval(latency.p99_ns.scaled(_MS) if latency else None),
        "p999_ms": _interval(latency.p999_ns.scaled(_MS) if latency else None),
        "ratio": _ratio(per_s),
        "p99_ratio": _ratio(p99),
        "client_cpu_ms": _MS * point.client_cpu_ns if point.answered else None,
        "server_cpu_ms": _MS * point.server_cpu_ns if point.answered else None,
        "cores_at_work": point.cores,
        "answered": point.answered,
        "failed": point.failed,
        "first_error": plain(point.first_error) or None,
        "client_is_limit": point.client_is_limit,
    }


def _at_limit(
    comparison: ServingComparison, variant: ServedVariant, at_limit: RateAtLimit
) -> dict[str, Any]:
    is_baseline = variant is comparison.baseline
    ratio = None if is_baseline else comparison.rate_ratio(variant.label, at_limit.rows)
    return {
        "rows": at_limit.rows or None,
        "limit_ms": _MS * at_limit.limit_ns,
        "requests_per_s": _interval(at_limit.per_s),
        "ratio": _ratio(ratio),
        "client_is_limit": at_limit.client_is_limit,
    }


def _interval(interval: Interval | None) -> dict[str, float] | None:
    return dataclasses.asdict(interval) if interval else None


def _ratio(ratio: ServingRatio | None) -> dict[str, Any] | None:
    if ratio is None:
        return None
    return {**dataclasses.asdict(ratio.interval), "verdict": ratio.verdict}
