"""Time of the client: between its steps, and in the call and the return of each."""

from __future__ import annotations

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.step_account import StepAccount
from workbench.number_words import duration

_BETWEEN, _CALL, _RETURN = "between steps", "call of the step", "return of the step"


def client_time(account: StepAccount) -> Claim | None:
    """The client keeps the step waiting: no op of it runs or is ready."""
    pieces = account.of_kind(_BETWEEN, _CALL, _RETURN)
    between, call, back = (
        account.per_step(account.of_kind(kind)) for kind in (_BETWEEN, _CALL, _RETURN)
    )
    if not pieces.any():
        return None
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
            "from its last op to the return."
        ),
        mend=(
            "Fewer hooks and less Python between steps"
            if python
            else "Fewer feeds and fetches; on a busy machine the client's thread wakes late"
        ),
        share=pieces.astype(float),
        at_most_ns=account.per_step(pieces),
    )
