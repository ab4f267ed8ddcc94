"""A finding about memory: pages that the kernel hands out anew in every step."""

from __future__ import annotations

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.step_account import StepAccount
from workbench.core.prediction.costs.node_costs import FAULT_NS
from workbench.number_words import duration, integer

# More would say that ops do nothing else.
_MOST = 0.9


def new_pages(account: StepAccount) -> Claim | None:
    """Ops write to pages that the process had given back to the kernel the step before."""
    untraced = account.trace.meta.untraced
    if untraced is None or not untraced.page_faults or not account.work_ns:
        return None
    faults = untraced.page_faults
    lost = faults * FAULT_NS
    ran = account.of_kind("op") & ~account.of_nodes(account.is_input)
    # Ops that split their work ask for pages on several cores.
    weights = min(_MOST, lost / max(account.work_ns, untraced.cpu_ns or 0)) * ran
    return Claim(
        key="new_pages",
        title="Every step gets its memory anew from the kernel",
        evidence=(
            f"A step without the tracer has {integer(faults)} page faults, about {duration(lost)} "
            "of CPU time: what the ops before have freed was given back to the kernel, which "
            "clears each page that it hands out again."
        ),
        mend="Call `wb.keep_freed_memory()` once; or preload tcmalloc or jemalloc",
        share=weights,
        at_most_ns=account.per_step(weights),
    )
