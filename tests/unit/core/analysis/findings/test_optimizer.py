"""The finding about Adam's updates, which go through whole tables."""

from __future__ import annotations

from tests.builders.findings import keys, of, on_gpu, plain, with_fusable
from tests.builders.step_traces import US, chain, step_trace
from workbench.core.trace.trace import Trace


def adam_trace(*, handles: bool, decays: bool = True) -> Trace:
    """A table whose moments take a batch's rows, and which moves by both; each op takes 10 µs."""
    of_handle = "Resource" if handles else ""
    kinds = {
        **{f"scaled_{moment}": "Mul" for moment in "mv"},
        **{f"decay_{moment}": "AssignVariableOp" if handles else "Assign" for moment in "mv"},
        **{f"rows_{moment}": f"{of_handle}ScatterAdd" for moment in "mv"},
        **({f"read_{moment}": "ReadVariableOp" for moment in "mv"} if handles else {}),
        "root": "Sqrt",
        "step": "Mul",
        "below": "AddV2",
        "quotient": "RealDiv",
        "move": "AssignSubVariableOp" if handles else "AssignSub",
        "dense": "MatMul",
    }
    edges = [("table", "move"), ("root", "below"), ("step", "quotient"), ("below", "quotient")]
    edges += [("quotient", "move"), ("^move", "dense")]
    for moment, behind in (("m", "step"), ("v", "root")):
        edges += [(f"scaled_{moment}", f"decay_{moment}"), (moment, f"rows_{moment}")]
        edges += [(moment, f"decay_{moment}"), (f"^decay_{moment}", f"rows_{moment}")] * decays
        if handles:
            edges += [(f"^rows_{moment}", f"read_{moment}"), (f"read_{moment}", behind)]
        else:
            edges += [(f"rows_{moment}", behind)]
    laid = [
        (name, op, 0, 10 * i, 10 * i, 10 * i + 10) for i, (name, op) in enumerate(kinds.items())
    ]
    # One after the other, as one thread runs them.
    edges += [(f"^{one}", other) for one, other in chain(*kinds)]
    also = [(name, "VarHandleOp" if handles else "VariableV2") for name in ("table", "m", "v")]
    return step_trace(laid, edges, step_us=10 * len(laid), also=also)


def test_a_table_that_adam_moves_whole():
    found = of(adam_trace(handles=False), "whole_table_update")
    assert found.title == "A table is updated whole at each step"
    assert found.toggle == "auto_fused" and found.cost_ns == 110 * US
    assert plain(found.evidence) == (
        "Adam moves every row of `table`: 11 ops, `move` among them, each go through a table or a "
        "moment of it. They take 0.11 ms a step, which grows with the tables, not with the batch."
    )
    assert "dense" not in found.nodes


def test_reads_of_its_handles_cost_with_it():
    trace = adam_trace(handles=True)
    found = of(trace, "whole_table_update")
    assert found.cost_ns == 130 * US and {"read_m", "read_v"} <= set(found.nodes)
    assert "copied_table" not in keys(trace)


def test_rows_that_no_decay_comes_before_are_another_optimizers():
    assert "whole_table_update" not in keys(adam_trace(handles=False, decays=False))


def test_fusion_is_the_remedy_where_a_rule_does_it():
    trace = adam_trace(handles=False)
    fused = of(with_fusable(trace, table=("lookup", "move")), "whole_table_update")
    assert fused.toggle == "auto_fused"
    stays = of(with_fusable(trace), "whole_table_update")
    assert stays.toggle is None and "the batch's rows alone" in stays.mend
    assert stays.cost_ns == fused.cost_ns


def test_on_a_gpu_is_none_that_fusion_would_do():
    assert "whole_table_update" not in keys(on_gpu(adam_trace(handles=False)))
