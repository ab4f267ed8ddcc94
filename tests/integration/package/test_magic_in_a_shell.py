"""`%%workbench` in a real IPython shell: a graph, a function, and an error with its line."""

from __future__ import annotations

import subprocess
import sys

import pytest

SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor")
for cell in {cells!r}:
    print("<cell>", flush=True)
    shell.run_cell(cell, store_history=True)
"""
CELLS = (
    "%load_ext workbench",
    """import tensorflow as tf
import workbench as wb
v1 = tf.compat.v1
WIDTH = 4

def read():
    data = tf.data.Dataset.range(10**9).map(lambda i: tf.fill([WIDTH], tf.cast(i, tf.float32)))
    return v1.data.make_one_shot_iterator(data).get_next()
""",
    """%%workbench --toggle stage --budget 1s --steps 3 --equivalence-steps 20 --quiet -o found
batch = read()
if optimizations.stage:
    batch = wb.staged(batch, optimizations.stage)
weight = v1.get_variable("w", [], initializer=v1.zeros_initializer())
loss = tf.reduce_mean(tf.square(tf.sin(batch) - weight))
count = v1.train.get_or_create_global_step()
train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=count)
""",
    "print([v.label for v in found.variants], [c.passed for c in found.equivalence])",
    """%%workbench --trace --steps 3 --quiet
weight = tf.Variable(1.0)

@tf.function
def step(x):
    # AutoGraph: needs the source of the cell
    if x > 3.0:
        loss = weight * x
    else:
        loss = x
    return loss

dataset = tf.data.Dataset.range(100).map(lambda i: tf.cast(i, tf.float32))
""",
    """%%workbench --quiet
x = 1
train_op = tf.matmul(tf.zeros([2, 3]), tf.zeros([5, 5]))
""",
)


@pytest.mark.slow
@pytest.mark.executors
def test_cells_build_steps():
    script = SHELL.format(cells=CELLS)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    shown = [part.strip() for part in done.stdout.split("<cell>\n")[1:]]
    assert shown[:2] == ["", ""]
    assert shown[2].startswith("Out[3]:") and "cell: " in shown[2] and "Stage" in shown[2]
    assert shown[3] == "['off', 'stage'] [True]"
    assert "3 steps, " in shown[4]
    first, *rest = shown[5].splitlines()
    assert first.startswith("RunError: notebook cell, line 3: ValueError: Dimensions must be equal")
    assert rest == ["%tb shows the whole traceback."]


OWN = (
    "%load_ext workbench",
    """%%workbench --own dim=16,32 --budget 1s --steps 0 --equivalence-steps 5 --quiet -o graph
import tensorflow as tf
weights = tf.compat.v1.get_variable("w", [optimizations["dim"]], use_resource=True)
loss = tf.reduce_mean(tf.square(weights - 1.0))
train_op = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss)
""",
    """%%workbench --own dim=16,32 --budget 1s --steps 0 --equivalence-steps 5 --quiet -o function
import tensorflow as tf
weights = tf.Variable(tf.ones([optimizations["dim"]]))
dataset = tf.data.Dataset.from_tensors(2.0).repeat()

@tf.function
def step(x):
    weights.assign_sub(0.1 * (weights - x))
    return tf.reduce_sum(weights)
""",
    """for measured in (graph, function):
    (check,) = [each for each in measured.equivalence if each.asked_otherwise]
    print(check.label, len(check.losses), check.losses != check.baseline_losses)""",
)


@pytest.mark.slow
def test_cells_read_their_own_toggles():
    done = subprocess.run(
        [sys.executable, "-c", SHELL.format(cells=OWN)],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    shown = [part.strip() for part in done.stdout.split("<cell>\n")[1:]]
    assert "Dim 32: it trains another way, as was asked" in shown[1]
    assert shown[3].splitlines() == ["dim 32 5 True"] * 2
