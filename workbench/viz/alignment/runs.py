"""The facts of two aligned runs side by side."""

from __future__ import annotations

from workbench.core.analysis.aligned_run import AlignedRun
from workbench.core.analysis.alignment import Alignment
from workbench.core.analysis.circumstances import captured_at
from workbench.viz.style import format
from workbench.viz.style.table import Table


def runs_table(alignment: Alignment) -> Table:
    """When, where and how long each was traced; what neither knows has no row."""
    runs = (alignment.a, alignment.b)
    facts = [_facts(run) for run in runs]
    rows = tuple(
        (name, *(fact[name] for fact in facts))
        for name in facts[0]
        if any(fact[name] != format.UNKNOWN for fact in facts)
    )
    return Table("The two traces", ("", *(run.label for run in runs)), rows)


def _facts(run: AlignedRun) -> dict[str, str]:
    meta, interval = run.trace.meta, run.interval_ns
    untraced = meta.untraced
    about = f" {format.interval(run.step_ns, *interval, format.duration)}" if interval else ""
    without = untraced.step_ns if untraced and not untraced.while_traced else None
    return {
        "Step, mean": format.duration(run.step_ns) + about,
        "Step without a tracer, mean": format.duration(without),
        "Steps traced": format.integer(run.steps),
        "Captured (UTC)": f"{captured_at(run):%Y-%m-%d %H:%M}",
        "Title": meta.title or format.UNKNOWN,
        "Cores": format.integer(meta.cores) if meta.cores else format.UNKNOWN,
        "TensorFlow": meta.tensorflow or format.UNKNOWN,
        "Tracer": meta.source.replace("_", " ") or format.UNKNOWN,
    }
