"""Examples of the documentation: where they stand, and what stands before each when it runs."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
PAGES = (HOME / "README.md", HOME / "README.zh-CN.md", *sorted((HOME / "docs").glob("*.md")))
_BLOCK = re.compile(
    r"(?:<!-- example: (?P<context>.*?) -->\n)?```(?P<kind>\w*)\n(?P<code>.*?)^```", re.M | re.S
)

_GRAPH = """
import tensorflow as tf
import workbench as wb
v1 = tf.compat.v1

def iterate():
    data = tf.data.Dataset.range(10**6).map(lambda i: tf.fill([4], tf.cast(i, tf.float32)))
    return v1.data.make_one_shot_iterator(data)

iterator = iterate()

def build_my_model(batch):
    weight = v1.get_variable("w", [], initializer=v1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.sin(batch, name="lookup") - weight))
    step = v1.train.get_or_create_global_step()
    return loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
"""
_LABELED = (
    _GRAPH
    + """
data = tf.data.Dataset.range(10**6).map(lambda i: (tf.fill([4], tf.cast(i, tf.float32)), i))
iterator = v1.data.make_one_shot_iterator(data)
"""
)
_META_GRAPH = (
    _GRAPH
    + """
with tf.Graph().as_default():
    iterator = iterate()
    loss, train_op = build_my_model(wb.staged(iterator.get_next()))
    tf.group(train_op, name="train")
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, "model")
"""
)
_MODEL_GRAPH = (
    _GRAPH
    + """
graph, trace = v1.get_default_graph(), None
loss, train_op = build_my_model(iterator.get_next())
"""
)
# `compare` itself has tests of its own; here, what it is given is built, and a function called.
_COMPARE = """
import functools
import inspect
import tensorflow as tf
import workbench as wb
from tests.builders.comparisons import comparison as measured

def opens(program, toggles):
    for toggle in toggles:
        wish = optimizations_of(toggle, wb.StageOptions(), wb.SmartStageOptions())
        if isinstance(program, wb.FunctionProgram):
            step, dataset = program.make()
            step(*next(iter(dataset)))
        else:
            with tf.Graph().as_default() as graph:
                built = program.build(wish)
                assert built.train_op.graph is built.loss.graph is graph
    return measured()

from workbench.experiments.program.toggles import optimizations_of

@functools.wraps(wb.compare)
def compare(*arguments, **named):
    inspect.signature(compare).bind(*arguments, **named)
    return opens(*arguments, **named)

wb.compare = compare
"""
_LAZY_ITERATOR = """
class iterator:
    get_next = staticmethod(lambda: iterate().get_next())
"""
# Likewise `trace`, and `predict`, for which the program is built.
_PREDICTED = (
    _GRAPH
    + _COMPARE
    + _LAZY_ITERATOR
    + """
from tests.builders.predictions import STAGE, SMART, predicted, predictions

@functools.wraps(wb.trace)
def trace(*arguments, **named):
    inspect.signature(trace).bind(*arguments, **named)

of_a_trace = wb.predict

@functools.wraps(of_a_trace)
def predict(trace, program=None, *arguments, **named):
    if program is None:
        return of_a_trace(trace, program, *arguments, **named)
    inspect.signature(predict).bind(trace, program, *arguments, **named)
    opens(program, ["stage", "smart_stage"])
    return predictions(predicted(STAGE, 1.7), predicted(SMART, 1.9))

wb.trace, wb.predict = trace, predict

def build(optimizations):
    loss, train_op = build_my_model(iterator.get_next())
    return wb.Built(train_op=train_op, loss=loss)

program = wb.Program(name="mine", build=build)
found = wb.predict(wb.trace(program), program)
"""
)
# Likewise `measured_ceilings`, for which the program is built.
_CEILINGS = (
    _PREDICTED
    + """
from tests.builders.predictions import ceiling, ceilings
from tests.builders.step_traces import chain, step_trace

ops = [("first", "MatMul", 0, 0, 0, 20), ("last", "MatMul", 0, 20, 80, 120)]
trace = step_trace(ops, chain("first", "last"), step_us=120)
of_a_program = wb.measured_ceilings

@functools.wraps(of_a_program)
def measured_ceilings(*arguments, **named):
    bound = inspect.signature(of_a_program).bind(*arguments, **named)
    opens(bound.arguments["program"], ["smart_stage"])
    return ceilings(ceiling("dense", 1.8), ceiling("lookups", 1.3))

wb.measured_ceilings = measured_ceilings
"""
)
# Likewise `find_best`, for which the program is built.
_SEARCHED = (
    _GRAPH
    + _COMPARE
    + _LAZY_ITERATOR
    + """
from tests.builders.searches import search

of_a_program = wb.find_best

@functools.wraps(of_a_program)
def find_best(*arguments, **named):
    bound = inspect.signature(of_a_program).bind(*arguments, **named)
    opens(bound.arguments["program"], ["stage", "smart_stage"])
    return search()

wb.find_best = find_best

def build(optimizations):
    loss, train_op = build_my_model(iterator.get_next())
    return wb.Built(train_op=train_op, loss=loss)

program = wb.Program(name="mine", build=build)
"""
)
_FUNCTION = """
import keras
import tensorflow as tf
import workbench as wb
dataset = tf.data.Dataset.from_tensor_slices((tf.ones([8, 3]), tf.ones([8, 1]))).batch(4)
weight = tf.Variable(tf.ones([3, 1]))
row = tf.ones([1, 3])
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse", jit_compile=False)

@tf.function
def train_step(features, label):
    loss = tf.reduce_mean(tf.square(features @ weight - label))
    weight.assign_sub(0.1 * weight)
    return loss

@tf.function
def predict(row):
    return row @ weight
"""
_MY_MODEL = (
    _FUNCTION
    + """
class MyModel:
    def __init__(self):
        self.weight = tf.Variable(1.0)

    def train(self, features, label):
        self.weight.assign_sub(0.1)
        return tf.reduce_mean(features) * self.weight
"""
)
_IDS = (
    _GRAPH
    + """
ids = tf.sparse.from_dense(tf.constant([[1, 2], [3, 0]], tf.int64))
table = v1.get_variable("table", [9, 4])
"""
)
# The addresses of a cluster of one task.
_TASK = """
import tensorflow as tf
from tests.builders.servers import free_ports
cluster = {"ps": [f"localhost:{free_ports(1)[0]}"]}
"""
_EXPORT = """
import tensorflow as tf
import workbench as wb
from workbench.ops import grouped_embedding_lookup
"""
_LOOKUP_FUNCTION = """
import tensorflow as tf
import workbench as wb
ids = tf.sparse.from_dense(tf.constant([[1, 2], [3, 0]], tf.int64))
table = tf.Variable(tf.ones([9, 4]))

@tf.function
def train_step(ids):
    return tf.reduce_sum(tf.nn.safe_embedding_lookup_sparse(table, ids))
"""
_LEARNED = (
    _MODEL_GRAPH
    + """
session = v1.Session(config=wb.executor_options("cost_model", start_step=1, stop_step=2))
session.run(v1.global_variables_initializer())
for _ in range(4):
    session.run(train_op)
"""
)
_PATH = """
import workbench as wb
from tests.builders.critical_paths import three_steps
trace = three_steps()
path = wb.critical_path(trace)
"""
_TRACE = """
import workbench as wb
from tests.builders.step_traces import chain, step_trace
ops = [("first", "MatMul", 0, 0, 0, 20), ("last", "MatMul", 0, 20, 80, 120)]
trace = step_trace(ops, chain("first", "last"), step_us=120)
"""
_TWO_TRACES = """
import workbench as wb
from tests.builders.alignments import staged, unstaged
from tests.builders.comparisons import comparison as measured, variant

unstaged().save("off.parquet")
staged().save("stage.parquet")
off = variant("off", 100, 1, trace=unstaged())
comparison = measured(variants=(off, variant("stage", 160, 1, trace=staged())))
"""
# The child process that would fetch the ids has tests of its own.
_LENS = """
import inspect
import workbench as wb
from tests.builders.embedding_lenses import fused_trace as fused, stock_trace
trace, fused_trace = stock_trace(), fused()
program = wb.Program(name="mine", build=lambda optimizations: None)
lens_of, trace_of = wb.embedding_lens, wb.trace

def embedding_lens(*traces, **named):
    inspect.signature(lens_of).bind(*traces, **named)
    return lens_of(*traces)

def traced(*arguments, **named):
    inspect.signature(trace_of).bind(*arguments, **named)
    return trace

wb.embedding_lens, wb.trace = embedding_lens, traced
"""
_LIMIT = """
import dataclasses
import workbench as wb
from tests.builders.comparisons import comparison
from tests.builders.limits import product_trace
trace, comparison = product_trace(), comparison()
fused = dataclasses.replace(comparison.variants[0], label="auto fused", trace=trace)
comparison = dataclasses.replace(comparison, variants=(*comparison.variants, fused))
"""
_MEMORY = """
import workbench as wb
from tests.builders.memories import chain_trace
trace = chain_trace()
"""
_CHARTS = """
import workbench as wb
from tests.builders.comparisons import planned_comparison
from tests.builders.embedding_lenses import skewed_lens
from tests.builders.memories import chain_trace
from tests.builders.predictions import STAGE, check, predicted, predictions as predictions_of
comparison, lens, memory = planned_comparison(), skewed_lens(), wb.memory(chain_trace())
predictions = predictions_of(predicted(STAGE, 1.7))
calibration = wb.Calibration(checks=(check("stage", 1.7, 1.6),))
"""
# The child processes of a session have tests of their own.
_SESSION = (
    _GRAPH
    + """
from tests.builders import sessions
from workbench.experiments.session import session as engine, setting_predictions

engine.compare = sessions.fake_compare([], traced=True)
setting_predictions.learned_graphs = lambda *arguments: sessions.learned()

def build(optimizations):
    loss, train_op = build_my_model(iterator.get_next())
    return wb.Built(train_op=train_op, loss=loss)

program = wb.Program(name="mine", build=build)
wb.Session(program).save("my_session")
"""
)
_PANEL = (
    _SESSION
    + """
import os
from tests.builders.searches import COST_MODEL, raced, search

def found(*arguments, **named):
    return search(raced(COST_MODEL, 1.3))

engine.find_best = found
os.environ["XDG_CACHE_HOME"] = os.getcwd()  # generated clicks go there
panel = wb.Workbench(program)
"""
)
# What a page's comment before a block names; functions run eagerly, the rest in a graph of its own.
# What two workers of a cluster have saved.
_WORKERS_TRACES = f"""
import pathlib, sys
sys.path.insert(0, {str(HOME)!r})
from tests.builders.cluster_traces import worker_trace
pathlib.Path("traces").mkdir()
for index in range(2):
    worker_trace(index, with_edges=True).save(f"traces/worker_{{index}}.parquet")
"""
# `serve_bench` itself has tests of its own; here its loads are short.
_SERVED = """
import pathlib
import workbench as wb
from tests.builders.serving import save_scores
folder = save_scores(pathlib.Path("model").absolute())
whole = wb.serve_bench

def serve_bench(program, toggles, **named):
    shorter = {"budget": "1s", "rounds": 2, "p99_limit": None, "progress": False}
    return whole(program, toggles, **(named | shorter))

wb.serve_bench = serve_bench
"""
_SERVED_RESULT = """
import workbench as wb
from tests.builders.served_models import served
comparison = served()
"""
# A model that TensorFlow 1 exported, and one of TensorFlow 2.
_EXPORTED = """
import tensorflow as tf
import workbench as wb
v1 = tf.compat.v1

with tf.Graph().as_default(), v1.Session() as session:
    inputs = {name: v1.placeholder(tf.int64, [None], name=name) for name in ("user", "item")}
    rows = [tf.nn.embedding_lookup(v1.get_variable(f"{name}s", [9, 4]), inputs[name])
            for name in inputs]
    scores = tf.reduce_sum(rows[0] * rows[1], 1, name="scores")
    session.run(v1.global_variables_initializer())
    v1.saved_model.simple_save(session, "my_model", inputs, {"scores": scores})
"""
_SIGNATURE = """
import tensorflow as tf
import workbench as wb

class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.tables = [tf.Variable(tf.ones([9, 4])) for _ in range(2)]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)] * 2)
    def score(self, user, item):
        user, item = (tf.gather(*each) for each in zip(self.tables, (user, item)))
        return {"scores": tf.reduce_sum(user * item, 1)}

trained = Model()
tf.saved_model.save(trained, "my_tf2_model", signatures=trained.score)
"""
CONTEXTS = {
    "graph": _GRAPH,
    "own graph": _GRAPH,
    "labeled graph": _LABELED,
    "meta graph": _META_GRAPH,
    "model graph": _MODEL_GRAPH,
    "own model": _GRAPH + _COMPARE + _LAZY_ITERATOR,
    "finished graph": _MODEL_GRAPH + _COMPARE,
    "own function": _MY_MODEL + _COMPARE,
    "function": _FUNCTION,
    "sparse ids": _IDS,
    "export": _EXPORT,
    "task": _TASK,
    "lookup function": _LOOKUP_FUNCTION,
    "served model": _EXPORTED,
    "signature": _SIGNATURE,
    "learned": _LEARNED,
    "path": _PATH,
    "predicted": _PREDICTED,
    "ceilings": _CEILINGS,
    "session": _SESSION,
    "panel": _PANEL,
    "searched": _SEARCHED,
    "trace": _TRACE,
    "two traces": _TWO_TRACES,
    "lens": _LENS,
    "limit": _LIMIT,
    "memory": _MEMORY,
    "charts": _CHARTS,
    "served": _SERVED,
    "served result": _SERVED_RESULT,
    "deeprec": _GRAPH.replace("import tensorflow as tf", "import workbench.compat.v1 as tf"),
    "workers' traces": _WORKERS_TRACES,
    "none": "",
    "eager": "",
}
_EAGER = ("own function", "function", "lookup function", "signature", "eager")


@dataclasses.dataclass(frozen=True)
class Example:
    """A fenced block of a page."""

    line: int
    kind: str
    context: str | None
    code: str


def examples(page: Path) -> list[Example]:
    """The blocks of a page, in their order."""
    text = page.read_text()
    return [
        Example(text.count("\n", 0, m.start("code")), m["kind"], m["context"], m["code"])
        for m in _BLOCK.finditer(text)
    ]


def script_of(found: list[Example]) -> str:
    """A script that runs Python examples, each beginning anew, and prints the line of each."""
    parts = ["import tensorflow as tf\n"]
    for each in found:
        code = CONTEXTS[each.context or "none"] + each.code
        place = f"line {each.line}"
        run = f"exec(compile({code!r}, {place!r}, 'exec'), {{'__name__': {place!r}}})"
        if each.context in _EAGER:
            parts.append(run)
        else:
            parts.append(f"with tf.Graph().as_default():\n    {run}")
        parts.append(f"print({place!r})")
    return "\n".join(parts)
