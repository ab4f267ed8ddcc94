"""Synchronous training of real local clusters, with each toggle, and with uneven inputs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.cluster_tasks import BATCH, result, seen, tasks
from workbench.cli.main import main
from workbench.errors import OptionError
from workbench.experiments.cluster.synchronous import synchronizing
from workbench.experiments.cluster.task import PS, WORKER, Task
from workbench.models.data.criteo import generate_criteo
from workbench.models.registry import MODELS

# Workers of the small program: a number is one worker's, and goes into one step.
EXAMPLES = 64
LOSSES = re.compile(r"loss ([-\d.naif]+) at first, ([-\d.naif]+) at last")
EACH = (
    *("stage", "smart_stage", "fused_v1", "fused_v2", "grouped", "auto_fused"),
    "smart_stage+grouped",
)
POLICIES = ("inline_executor", "cost_model_executor")
# Of DLRM. At step 5 a ReLU of this data is so near 0 that half a last bit of the variables at the
# beginning changes stock's own losses by 6e-4, and those of step 6 by 5e-3.
STEPS = 4


def losses(home: Path, toggle: str | None, **given: object) -> list[list[float]]:
    home.mkdir()
    generate_criteo(home / "clicks.tsv", rows=600)
    with tasks(home, program="dlrm", toggle=toggle, steps=STEPS, **given) as cluster:
        cluster.end(150)
    return [result(home, worker)["losses"] for worker in range(2)]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[list[float]]:
    return losses(tmp_path_factory.mktemp("plain") / "run", None, sync=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "toggle",
    [
        EACH[-1],
        *(pytest.param(each, marks=pytest.mark.slow) for each in EACH[:-1]),
        *(pytest.param(each, marks=pytest.mark.executors) for each in POLICIES),
    ],
)
def test_losses_are_those_without_it(tmp_path: Path, plain, toggle: str) -> None:
    found = losses(tmp_path / "run", toggle, sync=True)
    assert [len(each) for each in found] == [STEPS, STEPS]
    # The sum of two workers' gradients is taken in the order in which they come.
    np.testing.assert_allclose(found, plain, rtol=1e-5)


def count(home: Path, *, toggle: str = "stage", **given: object) -> tf.train.CheckpointReader:
    """Trains the small program to its data's end; the last checkpoint."""
    kept = str(home / "kept")
    with tasks(
        home, program="counting", toggle=toggle, steps=100, checkpoint=kept, **given
    ) as cluster:
        cluster.end(150)
    return tf.train.load_checkpoint(kept)


def numbers(home: Path, worker: int) -> list[int]:
    """What a worker that had one session trained on."""
    (found,) = seen(home, worker)
    return found


@pytest.mark.parametrize(
    ("toggle", "sync"),
    [
        ("stage", True),
        pytest.param("smart_stage", True, marks=pytest.mark.slow),
        pytest.param("stage", False, marks=pytest.mark.slow),
    ],
)
def test_each_example_is_trained_on_once(tmp_path: Path, toggle: str, sync: bool) -> None:
    kept = count(tmp_path, toggle=toggle, examples=EXAMPLES, sync=sync)
    found = [numbers(tmp_path, worker) for worker in range(2)]
    assert found == [list(range(worker, EXAMPLES, 2)) for worker in range(2)]
    assert all(result(tmp_path, worker)["ended"] for worker in range(2))
    steps = EXAMPLES // BATCH
    assert kept.get_tensor("global_step") == (steps // 2 if sync else steps)


@pytest.mark.slow
def test_the_first_end_of_data_ends_synchronous_training(tmp_path: Path) -> None:
    kept = count(tmp_path, examples=EXAMPLES, sync=True, ends_early=1)
    steps = EXAMPLES // 4 // BATCH
    assert [result(tmp_path, worker)["steps"] for worker in range(2)] == [steps, steps]
    assert all(result(tmp_path, worker)["ended"] for worker in range(2))
    assert kept.get_tensor("global_step") == steps


@pytest.mark.parametrize("early", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_others_go_on_where_one_ends_early(tmp_path: Path, early: int) -> None:
    kept = count(tmp_path, examples=EXAMPLES, ends_early=early)
    all_of_it, part = EXAMPLES // 2, EXAMPLES // 4
    assert len(numbers(tmp_path, early)) == part
    assert len(numbers(tmp_path, 1 - early)) == all_of_it
    assert kept.get_tensor("global_step") == (all_of_it + part) // BATCH


@pytest.mark.slow
def test_a_hook_that_stops_the_session_ends_the_worker(tmp_path: Path) -> None:
    kept = count(tmp_path, examples=EXAMPLES, stops_at=6)
    # A worker sees the step once it is there; another one may be on its way.
    assert 6 <= kept.get_tensor("global_step") <= 7
    assert not any(result(tmp_path, worker)["ended"] for worker in range(2))


def test_the_demo_hands_its_options_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    got = {}

    def run(command: list[str], **given: object) -> None:
        got.update(given, command=" ".join(command))

    monkeypatch.setattr("workbench.experiments.cluster.local_cluster.run_local_cluster", run)
    given = ["--sync", "--restarts", "3", "--checkpoint-every", "2s", "--generate", "100"]
    given += ["--no-pack-transfers"]
    assert main(["cluster-demo", "dlrm", *given, "--out", str(tmp_path)]) == 0
    assert got["restarts"] == 3
    assert "--checkpoint-every 2.0s" in got["command"]
    assert got["command"].endswith(" --sync --no-pack-transfers")


@pytest.mark.slow
@pytest.mark.parametrize("model", list(MODELS))
def test_each_model_trains_synchronously(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str
) -> None:
    kept = tmp_path / "kept"
    given = ["--sync", "--generate", "500", "--batch-size", "32", "--steps", "4"]
    given += ["--toggle", "smart_stage", "--timeout", "250s", "--checkpoint", str(kept)]
    assert main(["cluster-demo", model, *given, "--out", str(tmp_path)]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if ": 4 steps, " in line]
    losses = [[float(loss) for loss in LOSSES.search(line).groups()] for line in said]
    assert len(losses) == 2 and np.isfinite(losses).all()
    # One step of both, where without --sync each would count its own.
    assert tf.train.load_checkpoint(str(kept)).get_tensor("global_step") == 4


def chief() -> Task:
    return Task(job=WORKER, index=0, cluster={PS: ("a:1",), WORKER: ("b:1", "b:2")})


def test_outside_of_synchronous_training_an_optimizer_stays_what_it_is() -> None:
    optimizer = tf.compat.v1.train.AdamOptimizer()
    assert wb.cluster.synchronous(optimizer) is optimizer


def test_a_program_that_wraps_nothing_is_told_the_line() -> None:
    with (
        synchronizing(chief()) as training,
        pytest.raises(
            OptionError,
            match=r"program 'mine' trains without wb.cluster.synchronous, .*; write "
            r"wb.cluster.synchronous\(optimizer\).minimize\(loss, global_step=step\) in it",
        ),
    ):
        training.hooks("mine")


def test_a_second_optimizer_is_refused() -> None:
    with synchronizing(chief()):
        wb.cluster.synchronous(tf.compat.v1.train.AdamOptimizer())
        with pytest.raises(OptionError, match="wraps a second optimizer of one program; expected"):
            wb.cluster.synchronous(tf.compat.v1.train.AdamOptimizer())


def test_how_often_a_row_is_named_does_not_change_its_mean() -> None:
    """Row 1 has 1 + 2 of a worker and 5 of the other one, row 0 has 4 of the first one alone."""
    with tf.Graph().as_default(), synchronizing(chief()):
        table = tf.compat.v1.get_variable("table", [3, 1], initializer=tf.zeros_initializer())
        step = tf.compat.v1.train.create_global_step()
        optimizer = wb.cluster.synchronous(tf.compat.v1.train.GradientDescentOptimizer(1.0))
        rows = tf.compat.v1.placeholder(tf.int64, [None])
        values = tf.compat.v1.placeholder(tf.float32, [None, 1])
        gradient = tf.IndexedSlices(values, rows, tf.constant([3, 1], tf.int64))
        optimizer.apply_gradients([(gradient, table)], step)
        optimizer.ready_for_local_init_op.mark_used()
        graph = tf.compat.v1.get_default_graph()
        (put,) = [op for op in graph.get_operations() if "AccumulatorApply" in op.type]
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            session.run(tf.compat.v1.local_variables_initializer())
            session.run(put, {rows: [1, 0, 1], values: [[1.0], [4.0], [2.0]]})
            session.run(put, {rows: [1], values: [[5.0]]})
            session.run(optimizer.get_chief_queue_runner().enqueue_ops)
            np.testing.assert_array_equal(session.run(table), [[-4.0], [-4.0], [0.0]])
