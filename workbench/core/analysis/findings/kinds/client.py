"""Time of the client: between its steps, and in the call and the return of each."""

from __future__ import annotations

import numpy as np

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.kinds.scheduling import WAKE_NS
from workbench.core.analysis.findings.step_account import StepAccount
from workbench.number_words import duration

_BETWEEN, _CALL, _RETURN = "between steps", "call of the step", "return of the step"


def client_time(account: StepAccount) -> Claim | None:
    """The client keeps the step waiting as a rule: no op of it runs or is ready."""
    late = beyond_usual(account)
    as_a_rule = {
        kind: account.per_step(account.of_kind(kind) * (1 - late))
        for kind in (_BETWEEN, _CALL, _RETURN)
    }
    if not any(as_a_rule.values()):
        return None
    between, call, back = as_a_rule.values()
    python = between >= call + back
    return Claim(
        key="client_time",
        title=(
            "The client pauses between steps"
            if python
            else "Time passes before the first op and after the last one"
        ),
        evidence=(
            f"{duration(between)} a step pass between the return of one step and the call of the "
            f"next, {duration(call)} from the call to the first op of the chain, {duration(back)} "
            "from its last op to the return; steps in which it is longer than usual are not "
            "counted."
        ),
        mend=("Fewer hooks and less Python between steps" if python else "Fewer feeds and fetches"),
        share=account.of_kind(_BETWEEN, _CALL, _RETURN) * (1 - late),
        at_most_ns=between + call + back,
    )


def beyond_usual(account: StepAccount) -> np.ndarray:
    """The part of each piece of the client by which it is longer than usual, 0 to 1.

    Usual is the median of all steps; a little more is, too.
    """
    beyond = np.zeros(len(account.dur_ns))
    for kind in (_BETWEEN, _CALL, _RETURN):
        own = account.of_kind(kind)
        if own.any():
            # A step without a piece of this kind lost no time to it.
            without = np.zeros(max(0, account.steps - int(own.sum())), np.int64)
            usual = np.median(np.concatenate((account.dur_ns[own], without)))
            more = account.dur_ns - usual
            beyond[own & (more >= WAKE_NS)] = more[own & (more >= WAKE_NS)]
    return beyond / account.dur_ns
