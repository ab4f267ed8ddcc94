"""Causes: what each blocker holds back, counted by looking at every node by itself."""

from __future__ import annotations

import hypothesis
from hypothesis import strategies as st

from tests.builders.graphs import graph
from tests.builders.plans import towers
from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.causes import held_back
from workbench.core.boundary.legality import boundary_of


def numbers(boundary: Boundary, *names: str) -> list[int]:
    return [boundary.view.number(name) for name in names]


def test_a_node_counts_at_everything_that_it_depends_on() -> None:
    boundary = towers()
    found = held_back(
        boundary,
        [numbers(boundary, "table_0", "table_1"), numbers(boundary, "noise"),
         numbers(boundary, "keep_prob")],
    )  # fmt: skip
    # the lookups, joined, loss; noise, dropped, joined, loss; dropped, joined, loss
    assert found.behind.tolist() == [4, 4, 3]
    assert found.alone.tolist() == [2, 1, 0]


def test_what_a_loop_holds_back_is_found() -> None:
    text = """
    next = IteratorGetNext
    enter = Enter(next)
    merge = Merge(enter, back)
    step = Neg(merge)
    back = NextIteration(step)
    w = VariableV2
    read = Mul(step, w)
    """
    boundary = boundary_of(graph(text), targets=["read"])
    found = held_back(boundary, [numbers(boundary, "back"), numbers(boundary, "w")])
    assert found.behind.tolist() == [4, 1]


@hypothesis.given(st.data())
def test_counts_are_those_of_each_node_alone(data: st.DataObject) -> None:
    lines = ["next = IteratorGetNext", "w0 = VariableV2", "w1 = VariableV2", "w2 = VariableV2"]
    names = ["next", "w0", "w1", "w2"]
    for i in range(data.draw(st.integers(1, 10))):
        inputs = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
        lines.append(f"n{i} = AddN({', '.join(inputs)})")
        names.append(f"n{i}")
    lines.append(f"last = AddN(next, {names[-1]})")
    boundary = boundary_of(graph("\n".join(lines)), targets=["last"])
    causes = [["w0"], ["w1", "w2"]]
    found = held_back(boundary, [numbers(boundary, *each) for each in causes])
    above = {
        refusal.node: {blocker.node for blocker in boundary.blockers_of(refusal.node)}
        for refusal in boundary.refusals()
    }
    for place, cause in enumerate(causes):
        assert found.behind[place] == sum(bool(held & set(cause)) for held in above.values())
        assert found.alone[place] == sum(held <= set(cause) for held in above.values())
