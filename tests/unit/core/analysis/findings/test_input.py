"""Findings about the input and its stage, and traces in which nobody claims them."""

from __future__ import annotations

import dataclasses

import pytest

from tests.builders.findings import keys, of, plain
from tests.builders.step_traces import US, chain, step_trace, waiting_steps
from workbench.core.analysis.findings.find import find

# The front: reads and prepares the batch for 50 µs, computes for 50.
FRONT = (
    ("next", "IteratorGetNext", 0, 0, 0, 30),
    ("hash", "StringToHashBucketFast", 0, 30, 30, 50),
    ("dense", "MatMul", 0, 50, 50, 100),
)
FED = [*chain("next", "hash", "dense"), ("weight", "dense")]
WEIGHT = [("weight", "VarHandleOp")]


class TestFront:
    def test_nothing_staged_costs_what_only_the_batch_needs(self):
        found = of(step_trace(FRONT, FED, step_us=100, also=WEIGHT), "nothing_staged")
        assert found.cost_ns == 50 * US and found.toggle == "smart_stage"
        # Two threads need 35 µs for 70 µs of ops, in any order.
        assert found.gain_ns == 50 * US
        assert found.nodes == ("next", "hash")
        assert plain(found.evidence) == (
            "1 input or parsing op and 1 id op need only the batch: none depends on a variable. "
            "They are 50 % of the critical path. Longest: `next` (30 µs) and `hash` "
            "(20 µs). For 30 µs of it the step waits for the batch itself."
        )

    def test_a_mere_read_needs_a_plain_stage(self):
        ops = (FRONT[0], ("dense", "MatMul", 0, 30, 30, 100))
        found = of(step_trace(ops, chain("next", "dense"), step_us=100), "nothing_staged")
        # "dense" reads no variable here, so it is of the front: 30 of 100 µs wait for the batch.
        assert found.toggle == "smart_stage"
        trace = step_trace(
            ops, [*chain("next", "dense"), ("weight", "dense")], step_us=100, also=WEIGHT
        )
        assert of(trace, "nothing_staged").toggle == "stage"
        assert of(trace, "nothing_staged").mend == "Put the batch behind a stage: wb.staged(batch)"

    @pytest.mark.parametrize(
        "state", ["VarHandleOp", "VariableV2", "ReadVariableOp", "RandomUniform", "Placeholder"]
    )
    def test_what_depends_on_state_is_not_of_the_front(self, state: str):
        fed = [*FED, ("state", "hash")]
        trace = step_trace(FRONT, fed, step_us=100, also=[*WEIGHT, ("state", state)])
        assert of(trace, "nothing_staged").cost_ns == 30 * US

    def test_the_batch_of_a_function_is_what_it_is_called_with(self):
        ops = (("hash", "StringToHashBucketFast", 0, 0, 0, 50), ("dense", "MatMul", 0, 50, 50, 100))
        fed = [*chain("rows", "hash", "dense"), *chain("resource", "read", "dense")]
        also = [("rows", "_Arg"), ("resource", "_Arg"), ("read", "ReadVariableOp")]
        found = of(step_trace(ops, fed, step_us=100, also=also), "nothing_staged")
        assert found.cost_ns == 50 * US and found.nodes == ("hash",)
        assert "1 id op and 1 other need only the batch" in plain(found.evidence)

    def test_a_table_that_a_function_is_handed_may_change(self):
        ops = (("find", "LookupTableFindV2", 0, 0, 0, 50), ("dense", "MatMul", 0, 50, 50, 100))
        fed = [*chain("rows", "keys", "find", "dense"), ("table", "find")]
        also = [("rows", "_Arg"), ("keys", "Reshape")]
        trace = step_trace(ops, fed, step_us=100, also=[*also, ("table", "_Arg")])
        assert "nothing_staged" not in keys(trace)
        trace = step_trace(ops, fed, step_us=100, also=[*also, ("table", "HashTableV2")])
        assert "nothing_staged" in keys(trace)

    def test_two_in_a_hundred_are_noise(self):
        ops = (("next", "IteratorGetNext", 0, 0, 0, 1), ("dense", "MatMul", 0, 1, 1, 100))
        trace = step_trace(
            ops, [*chain("next", "dense"), ("weight", "dense")], step_us=100, also=WEIGHT
        )
        assert "nothing_staged" not in keys(trace)

    def test_behind_a_stage_too_little_runs_ahead(self):
        found = of(waiting_steps(computes="StringToHashBucketFast", ahead=2), "little_staged")
        assert found.title == "The batch is prepared in the step"
        found = of(waiting_steps(computes="DecodeCSV", ahead=2), "little_staged")
        assert found.title == "The batch is parsed in the step"
        assert found.mend == "Move the stage behind them: SmartStage finds what may run ahead"
        assert "little_staged" not in keys(waiting_steps(ahead=2))


class TestBuffer:
    def test_one_thread_that_waits_for_its_input(self):
        found = of(waiting_steps(), "one_thread_stage")
        # A step needs 60 µs; two threads make an item in the 90 that its input takes.
        assert found.cost_ns == 40 * US and found.gain_ns == 10 * US
        assert found.mend.startswith("StageOptions(num_threads=2)") and found.toggle is None
        assert plain(found.evidence) == (
            "The stage's only thread stands in `input/next` 91 % of the time that an item takes "
            "it (99 µs). 6 of 6 takes find the buffer empty; the step waits "
            "40 µs on average, 40 µs at the 95th percentile, and waits in 6 of 6 "
            "steps."
        )

    def test_an_input_that_is_all_of_an_item_gains_nothing_from_a_second_thread(self):
        trace = waiting_steps(reads_us=98)
        assert "one_thread_stage" not in keys(trace)
        found = of(trace, "input_bound")
        assert "For 99 % of that it stands in `input/next`, which answers one thread at a time" in (
            plain(found.evidence)
        )
        assert "threads" not in found.mend

    def test_several_threads_or_an_input_that_computes_are_bound_by_the_input(self):
        for trace in (waiting_steps(threads=2), waiting_steps(reads="DecodeCSV")):
            assert "one_thread_stage" not in keys(trace)
            found = of(trace, "input_bound")
            assert found.cost_ns == pytest.approx(40 * US) and found.gain_ns == 40 * US
        assert "the stage has 2 threads" in of(waiting_steps(threads=2), "input_bound").evidence

    def test_the_verdict_is_the_buffers(self):
        verdict = find(waiting_steps()).verdict
        assert verdict.bound == "input"
        assert verdict.words == (
            "The input is the bottleneck: 6 of 6 takes find the buffer empty, 0 find it full; it "
            "holds 0.0 of 1 on average."
        )

    def test_a_full_buffer_is_no_finding_but_a_verdict(self):
        trace = waiting_steps(ahead=2, capacity={"stage": 2})
        findings = find(trace)
        assert "input_bound" not in keys(trace) and "one_thread_stage" not in keys(trace)
        assert findings.verdict.bound == "step"
        assert findings.verdict.words == (
            "The step is the bottleneck, not its input: 0 of 6 takes find the buffer empty, 6 find "
            "it full; it holds 2.0 of 2 on average."
        )

    def test_without_a_stage_the_path_says_what_bounds_the_step(self):
        verdict = find(step_trace(FRONT, FED, step_us=100, also=WEIGHT)).verdict
        assert verdict.bound == "input"
        assert plain(verdict.words) == (
            "The input is the bottleneck: what needs only the batch is 50 % of the critical path "
            "of 0.10 ms. There is no stage, so no buffer whose fill shows it."
        )
        ops = (("dense", "MatMul", 0, 0, 0, 100),)
        verdict = find(step_trace(ops, [("dense", "dense")], step_us=100)).verdict
        assert verdict.bound == "step"
        assert verdict.words.startswith("The step is the bottleneck, not its input:")

    def test_its_fill_is_kept_over_time(self):
        fill = find(waiting_steps()).fill
        assert fill["count"].tolist() == [0, *[1, 0] * 6]

    def test_items_that_no_step_takes_say_nothing(self):
        trace = waiting_steps(ahead=2)
        trace.items[["take_track", "take_step"]] = -1
        assert find(trace).verdict.bound == "unknown"
        assert find(trace).verdict.words == (
            "The trace shows items of a stage, but no step that takes one."
        )
        assert "input_bound" not in keys(trace)

    def test_a_buffer_that_is_empty_now_and_then_bounds_both(self):
        trace = waiting_steps(steps=4, ahead=1, capacity={"stage": 1})
        # The second of four items comes after its take was called, the others before.
        trace.items.loc[1, ["put_start_ns", "put_end_ns"]] += 150 * US
        trace.items.loc[1, "take_end_ns"] = trace.items.loc[1, "put_end_ns"]
        verdict = find(trace).verdict
        assert verdict.bound == "both"
        assert verdict.words.startswith(
            "Now the input is the bottleneck, now the step: 1 of 4 takes find the buffer empty"
        )

    def test_what_was_not_traced_of_a_stage_is_wait_only_while_a_step_takes(self):
        trace = waiting_steps(steps=4)
        # Of the stage nothing is known but the puts of its items.
        runs = trace.runs[trace.runs["track"] == 0]
        events = trace.events[trace.events["track"] == 2]
        findings = find(dataclasses.replace(trace, runs=runs, events=events))
        assert findings.wait_ns == pytest.approx(40 * US)
        assert findings.not_explained_ns == pytest.approx(0)
