"""The area under the ROC curve: exact, with ties, and in words where it is undefined."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.experiments.measurement.auc import auc_of
from workbench.experiments.measurement.check_sessions import run_steps
from workbench.experiments.worker.steps.scored_steps import ScoredSteps
from workbench.experiments.worker.wire.messages import SCORES, Steps


def steps(*pairs):
    return [tuple(np.array(each, np.float64) for each in pair) for pair in pairs]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=30))
def test_it_counts_the_pairs_that_are_in_order(rows):
    labels, scores = zip(*rows, strict=True)
    positive = [score for label, score in rows if label]
    negative = [score for label, score in rows if not label]
    half = len(rows) // 2
    found = auc_of(steps((labels[:half], scores[:half]), (labels[half:], scores[half:])))
    assert (found.rows, found.steps) == (len(rows), 2)
    if not (positive and negative):
        assert (found.value, found.undefined) == (None, "one class")
        return
    pairs = list(itertools.product(positive, negative))
    in_order = sum((above > below) + (above == below) / 2 for above, below in pairs)
    assert found.value == pytest.approx(in_order / len(pairs))


@pytest.mark.parametrize(
    ("scored", "words"),
    [
        ([], "no row was read"),
        (steps(([0, 1, 2], [0, 1, 2])), "labels other than 0 and 1"),
        (steps(([0, 1], [0, np.nan])), "scores that are no numbers"),
        (steps(([1, 1], [0, 1])), "one class"),
        (steps(([0, 1], [0, 1, 2])), "2 labels and 3 scores"),
    ],
)
def test_without_a_value_it_says_why(scored, words):
    found = auc_of(scored)
    assert (found.value, found.undefined) == (None, words)


class Forgets:
    """A worker whose sessions keep the scores of their last two steps."""

    def send(self, command):
        self._count = command.steps

    def receive(self):
        return Steps(
            ends_ns=np.arange(self._count + 1),
            values=np.zeros(self._count),
            ended=False,
            scored=steps(*[([0, 1], [0, 1])] * min(2, self._count)),
        )


def test_steps_before_those_that_were_forgotten_are_left_out_too():
    (ran,) = run_steps([Forgets()], ["scored"], 30, [0], SCORES, 10.0)
    assert (len(ran.values), len(ran.scored)) == (30, 2)


def test_steps_beyond_a_million_rows_are_forgotten(monkeypatch):
    monkeypatch.setattr("workbench.experiments.worker.steps.scored_steps._MOST_ROWS", 7)
    collected = ScoredSteps()
    for number in range(4):
        collected.add(np.ones((3, 1), bool), np.full((3, 1), number, np.float32))
    assert [pair[1].tolist() for pair in collected.pairs()] == [[2] * 3, [3] * 3]
    collected.add(np.ones(9), np.zeros(9))
    assert [len(pair[0]) for pair in collected.pairs()] == [9]
