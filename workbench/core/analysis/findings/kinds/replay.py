"""A finding about the trace itself: the times of its ops do not explain its steps."""

from __future__ import annotations

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.sentences import joined
from workbench.core.analysis.findings.step_account import StepAccount
from workbench.core.prediction.replay import Replay, replay_of_trace
from workbench.number_words import duration, share


def replay_off(account: StepAccount) -> Claim | None:
    """The steps, simulated from the times of their ops, are longer or shorter than they were."""
    replay = replay_of_trace(account.trace)
    if replay is None or replay.holds:
        return None
    ran = account.of_kind("op") & ~account.of_nodes(account.is_input)
    on_path = account.per_step(ran.astype(float))
    if not on_path:
        return None
    off_ns = abs(replay.simulated_ms - replay.measured_ms) * 1e6
    more = "longer" if replay.error > 0 else "shorter"
    number = {name: row for row, name in enumerate(account.name.tolist())}
    return Claim(
        key="replay_off",
        title="The times of the ops do not explain the steps",
        evidence=(
            f"Simulated from the times of its ops, a traced step takes "
            f"{duration(replay.simulated_ms * 1e6)}, which is {share(abs(replay.error))} {more} "
            f"than the {duration(replay.measured_ms * 1e6)} that it took. {_ops(replay)} Costs and "
            "gains of the other findings may be off by as much. Predictions from this trace have "
            "intervals that are wider by it, or are withheld."
        ),
        mend=(
            "Trace again, more steps, on a machine that does nothing else; until then measure a "
            "setting before you choose it"
        ),
        share=ran * min(1.0, off_ns / on_path),
        at_most_ns=None,
        nodes=tuple(number[each.node] for each in replay.doubts),
        of_machine=True,
    )


def _ops(replay: Replay) -> str:
    if not replay.doubts:
        return "No op stands out: what takes the time is not in the trace."
    ops = [f"`{d.node}` ({d.op}) {d.why}, {duration(d.ns)} a step" for d in replay.doubts]
    return f"These do not fit: {joined(ops)}."
