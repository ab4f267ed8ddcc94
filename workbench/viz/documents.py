"""Results as JSON documents: what scripts and agents read, with the number of the schema.

Units stand at the end of a name, shares lie between 0 and 1, and null is what is not known. A new
field keeps the number of the schema; a field that goes, or means something else, raises it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from workbench.core.analysis.cluster_report import ClusterReport
from workbench.core.analysis.critical_path import CriticalPath
from workbench.core.analysis.findings.finding import Finding, Findings
from workbench.core.trace.metrics import step_metrics
from workbench.core.trace.trace import Trace
from workbench.core.what_if.predictions import Predicted, Predictions
from workbench.experiments.comparison.findings import ComparedFindings
from workbench.experiments.comparison.measured import MeasuredVariant, Ratio
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.measurement.auc import Auc
from workbench.experiments.regression.gate import Gate
from workbench.experiments.regression.rerun import Again
from workbench.experiments.search.best import Best, Raced
from workbench.experiments.serving.results import ServingComparison
from workbench.viz.comparison.view import compare_view
from workbench.viz.critical_path.view import critical_path_view
from workbench.viz.findings.view import findings_view
from workbench.viz.predictions.view import predictions_view
from workbench.viz.search.view import search_view
from workbench.viz.serving.view import serving_view
from workbench.viz.style.plain_text import plain
from workbench.viz.style.plain_values import plain_values

SCHEMA = 1
Document = dict[str, Any]
# Of a table that may have thousands of rows, the first ones.
_ROWS = 50
_NS_IN_MS = 1e6


def document(value: Any) -> Document:
    """A result as a document: its kind, its answer in a sentence, its numbers.

    Args:
      value: a comparison, findings, a critical path, predictions, a search, a gate, a variant that
        was measured again, a trace, the report of a cluster, or a served model.

    Raises:
      TypeError: any other type.
    """
    for kind, (name, made) in _DOCUMENTS.items():
        if isinstance(value, kind):
            return {"kind": name, **plain_values(made(value))}
    raise TypeError(f"there is no document of a {type(value).__name__}")


def _serving(comparison: ServingComparison) -> Document:
    view = serving_view(comparison)
    return {
        "program": comparison.program,
        "signature": comparison.signature,
        "requests_from": comparison.requests_from,
        "answer": _text(view.sentence),
        "next": _plain(view.next_step),
        "baseline": comparison.baseline.label,
        "rounds": comparison.rounds,
        "loads": comparison.to_pandas().to_dict("records"),
        "rates_at_limit": [
            {
                "variant": variant.label,
                "rows": limited.rows,
                "p99_limit_ms": limited.limit_ns / _NS_IN_MS,
                "requests_per_s": limited.per_s.value if limited.per_s else None,
                "at_least": limited.at_least,
                "ratio": ratio.interval.value if ratio else None,
            }
            for variant in comparison.variants
            for limited in variant.rates_at_limit
            for ratio in [comparison.rate_ratio(variant.label, limited.rows)]
        ],
        "receipts": [
            {**dataclasses.asdict(receipt), "passed": receipt.passed if receipt.requests else None}
            for receipt in comparison.receipts
        ],
        "findings": [dataclasses.asdict(row) for row in view.findings],
        "environment": comparison.environment,
        "command": comparison.command,
        "taken_at": comparison.taken_at,
    }


def _comparison(comparison: Comparison) -> Document:
    view = compare_view(comparison)
    return {
        "program": comparison.program,
        "answer": _text(view.sentence),
        "next": _plain(view.next_step),
        "baseline": comparison.baseline,
        "variants": [_variant(comparison, variant) for variant in comparison.variants],
        "checks": [
            {
                "label": check.label,
                "check": check.kind,
                "passed": check.passed,
                "steps": check.steps,
                "detail": _plain(check.detail),
                "losses": check.losses,
                "baseline_losses": check.baseline_losses,
                "auc": _auc(check.auc),
                "baseline_auc": _auc(check.baseline_auc),
            }
            for check in comparison.equivalence
        ],
        "bounds": [
            {"name": bound.name, "steps_per_s": bound.steps_per_s, "detail": _plain(bound.detail)}
            for bound in comparison.bounds
        ],
        "failed": comparison.failed,
        "environment": comparison.environment,
        "command": comparison.command,
    }


def _auc(auc: Auc | None) -> Document | None:
    return dataclasses.asdict(auc) if auc else None


def _variant(comparison: Comparison, variant: MeasuredVariant) -> Document:
    ratio = comparison.ratio_of(variant.label)
    return {
        "label": variant.label,
        "steps_per_s": _interval(variant.steps_per_s, variant.low, variant.high),
        "step_ms_median": variant.step_ms_median,
        "ratio": _ratio(ratio) if ratio else None,
        "same_training": comparison.trains_the_same(variant.label),
        "peak_tensor_bytes": variant.peak_tensor_bytes,
        "has_trace": variant.trace is not None,
        "notes": variant.notes,
    }


def _ratio(ratio: Ratio) -> Document:
    found = _interval(ratio.ratio, ratio.low, ratio.high)
    return {**found, "verdict": ratio.verdict, "predicted": ratio.predicted}


def _interval(value: float, low: float, high: float) -> Document:
    return {"value": value, "low": low, "high": high}


def _findings(findings: Findings) -> Document:
    view = findings_view(findings)
    return {
        "answer": _plain("".join(view.sentence)),
        "summary": _plain(view.summary),
        "steps": findings.steps,
        "step_ms": findings.step_ns / _NS_IN_MS,
        "bound": findings.verdict.bound,
        "wait_ms": findings.wait_ns / _NS_IN_MS,
        "not_explained_ms": findings.not_explained_ns / _NS_IN_MS,
        "findings": [_finding(each) for each in findings],
    }


def _finding(finding: Finding) -> Document:
    return {
        "key": finding.key,
        "title": _plain(finding.title),
        "is_cause": finding.is_cause,
        "cost_ms": finding.cost_ns / _NS_IN_MS,
        "gain_ms_at_most": _ms(finding.gain_ns),
        "wait_share": finding.wait_share,
        "evidence": _plain(finding.evidence),
        "mend": _plain(finding.mend),
        "toggle": finding.toggle,
        "nodes": finding.nodes[:_ROWS],
        "sources": finding.sources,
    }


def _compared_findings(compared: ComparedFindings) -> Document:
    return {
        "variants": [
            {
                "label": label,
                **_findings(findings),
                "gone": [each.key for each in compared.gone(label)],
            }
            for label, findings in compared.variants
        ]
    }


def _critical_path(path: CriticalPath) -> Document:
    table = path.df
    rows = [
        {
            **{name: row[name] for name in ("name", "op", "family", "side", "share", "source")},
            "segment": row["kind"],
            "ms": row["ns"] / _NS_IN_MS,
            "slack_ms": row["slack_ns"] / _NS_IN_MS if row["slack_ns"] >= 0 else None,
        }
        for row in table.head(_ROWS).to_dict("records")
    ]
    kinds = [
        {
            "segment": row["kind"],
            "side": row["side"],
            "ms": row["ns"] / _NS_IN_MS,
            "share": row["share"],
        }
        for row in path.by_kind().to_dict("records")
    ]
    return {
        "answer": _text(critical_path_view(path).sentence),
        "steps": path.steps,
        "step_ms": path.step_ns / _NS_IN_MS,
        "segments": kinds,
        "nodes": rows,
        "nodes_left_out": max(0, len(table) - _ROWS),
    }


def _predictions(predictions: Predictions) -> Document:
    view, best, replay = predictions_view(predictions), predictions.best, predictions.replay
    return {
        "answer": _text(view.sentence),
        "traced": predictions.traced.label,
        "best": best.label if best else None,
        "replay": replay
        and {
            "measured_ms": replay.measured_ms,
            "simulated_ms": replay.simulated_ms,
            "untraced_ms": replay.untraced_ms,
        },
        "settings": [_predicted(each) for each in predictions.predicted],
        "withheld": [{"label": each.label, "reason": each.reason} for each in predictions.withheld],
    }


def _predicted(predicted: Predicted) -> Document:
    return {
        "label": predicted.label,
        "ratio": _interval(predicted.ratio, predicted.low, predicted.high),
        "step_ms": _interval(predicted.step_ms, predicted.low_ms, predicted.high_ms),
        "limited_by": predicted.limited_by,
        "bound_ms": predicted.bound_ms,
        "plan": predicted.plan,
    }


def _best(best: Best) -> Document:
    return {
        "program": best.program,
        "answer": _text(search_view(best).sentence),
        "best": _raced(best.best),
        "runners_up": [_raced(each) for each in best.runners_up],
        "not_measured": [
            {"label": each.label, "reason": each.reason} for each in best.not_measured
        ],
        "code": best.code,
        "in_program": best.in_program,
        "budget_s": best.budget_s,
        "took_s": best.took_s,
        "memory_bytes": best.memory_bytes,
        "notes": best.notes,
        "comparison": _comparison(best.comparison),
    }


def _raced(raced: Raced) -> Document:
    return {
        "label": raced.label,
        "ratio": _interval(raced.ratio, raced.low, raced.high),
        "rounds": raced.rounds,
        "predicted": raced.predicted.ratio if raced.predicted else None,
        "reason": raced.reason,
    }


def _gate(gate: Gate) -> Document:
    return {
        "passed": gate.passed,
        "standing": gate.standing,
        "limit": gate.limit,
        "strict": gate.strict,
        "against": gate.against,
        "variants": [
            {
                "label": each.label,
                "standing": each.standing,
                "ratio": _interval(each.ratio.value, each.ratio.low, each.ratio.high),
            }
            for each in gate.checked
        ],
        "notes": gate.notes,
    }


def _again(again: Again) -> Document:
    return {
        "label": again.now.label,
        "standing": again.standing,
        "then": _ratio(again.then),
        "now": _ratio(again.now),
        "change": _interval(again.change.value, again.change.low, again.change.high),
    }


def _trace(trace: Trace) -> Document:
    metrics = step_metrics(trace) if len(trace.steps()) else None
    return {
        "title": trace.meta.title,
        "steps": len(trace.steps()),
        "events": len(trace.events),
        "tracks": len(trace.tracks),
        "nodes": len(trace.nodes),
        "step_ms_median": _ms(metrics.step_ns_median if metrics else None),
        "take_wait_share": metrics.take_wait_share if metrics else None,
    }


def _cluster(report: ClusterReport) -> Document:
    return {
        "workers": report.workers,
        "clocks": report.clocks.to_dict("records"),
        "bytes": report.owners.to_dict("records"),
        "straggler": dataclasses.asdict(report.straggler),
        "findings": [_finding(each) for each in report.findings],
    }


def _ms(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / _NS_IN_MS


def _text(pieces: Sequence[tuple[str, bool]]) -> str:
    return _plain("".join(text for text, _ in pieces))


def _plain(text: str) -> str:
    """A line with no other space than the usual one."""
    return " ".join(plain(text).split())


_DOCUMENTS: dict[type, tuple[str, Callable[[Any], Document]]] = {
    Comparison: ("comparison", _comparison),
    Findings: ("findings", _findings),
    ComparedFindings: ("compared findings", _compared_findings),
    CriticalPath: ("critical path", _critical_path),
    Predictions: ("predictions", _predictions),
    Best: ("search", _best),
    Gate: ("gate", _gate),
    Again: ("measured again", _again),
    Trace: ("trace", _trace),
    ClusterReport: ("cluster", _cluster),
    ServingComparison: ("serving", _serving),
}
