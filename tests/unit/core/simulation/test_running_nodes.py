"""Nodes that run: what splits its work takes what cores the others leave."""

from __future__ import annotations

import pytest

from workbench.core.simulation.running_nodes import Running, RunningNodes


def ends(*nodes: tuple[float, bool], cores: float = 2, split_cores: float = 2) -> list[float]:
    """When each node ends that begins at 0: how long it takes alone, and whether it splits."""
    running = RunningNodes(cores, split_cores)
    for number, (ns, splits) in enumerate(nodes):
        running.add(Running(ns, number, number, 1.0, splits))
    found, now = {}, 0.0
    while running.nodes:
        lasts, ended = running.end_next()
        now += lasts
        found[ended.node] = now
    assert running.ops == 0
    return [found[number] for number in range(len(nodes))]


def test_alone_it_takes_its_time():
    assert ends((10, True)) == [10]
    assert ends((10, False)) == [10]


def test_beside_another_it_has_one_core_until_that_ends():
    # 4 at half its pace, then 8 alone.
    assert ends((10, True), (4, False)) == pytest.approx([12, 4])


def test_two_share_the_cores():
    assert ends((10, True), (10, True)) == pytest.approx([20, 20])
    assert ends((10, True), (10, True), cores=4) == pytest.approx([10, 10])


def test_what_runs_on_one_core_never_waits_for_what_splits():
    assert ends((10, False), (10, False)) == [10, 10]
    assert ends((30, False), (10, True), (10, True), cores=3, split_cores=2)[0] == 30


def test_an_input_takes_no_core():
    running = RunningNodes(2, 2.0)
    running.add(Running(3, 0, -1, 0.0))
    running.add(Running(10, 1, 0, 1.0, True))
    assert running.busy == 2
    assert running.end_next()[0] == 3
    assert running.end_next()[0] == pytest.approx(7)
