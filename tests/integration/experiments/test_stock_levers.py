"""TensorFlow's levers in comparisons: with their receipts, and refused where they do nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import cloudpickle
import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from workbench.core.toggles.stock import gpu_threads
from workbench.errors import OptionError, RunError

# The child cannot import a test module by name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
ROWS, WIDTH = 16, 8


def lines(path):
    """Rows of numbers as text, decoded one by one: what a cache and parallel maps are for."""
    import tensorflow as tf

    def decode(line):
        return tf.strings.to_number(tf.strings.split(line, ","))

    data = tf.data.TextLineDataset(path).map(decode)
    return data.map(lambda row: tf.ensure_shape(row, [WIDTH])).batch(ROWS, drop_remainder=True)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    values = np.random.RandomState(0).normal(size=(ROWS * 8, WIDTH)).astype(np.float32)
    file = tmp_path_factory.mktemp("data") / "rows.csv"
    file.write_text("".join(",".join(map(repr, map(float, row))) + "\n" for row in values))
    return str(file)


def program_of(data):
    def build(optimizations):
        import tensorflow as tf

        v1 = tf.compat.v1
        batch = v1.data.make_one_shot_iterator(data()).get_next()
        weights = v1.get_variable("w", [WIDTH, 1], use_resource=True)
        loss = tf.reduce_mean(tf.square(batch @ weights - 1.0))
        train_op = v1.train.AdagradOptimizer(0.1).minimize(loss)
        fingerprint = tf.reduce_sum(tf.cast(batch * 1000, tf.int64))
        return wb.Built(train_op=train_op, loss=loss, fingerprint=fingerprint)

    return wb.Program(name="rows", build=build)


def function_of(data):
    def make():
        import tensorflow as tf

        weights = tf.Variable(tf.ones([WIDTH, 1]))

        @tf.function
        def step(batch):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(batch @ weights - 1.0))
            weights.assign_sub(0.1 * tape.gradient(loss, weights))
            return loss

        return step, data()

    return wb.FunctionProgram(name="rows", make=make)


def keras_of(data, **compiled):
    def make():
        import keras

        model = keras.Sequential([keras.layers.Dense(64, "relu"), keras.layers.Dense(1)])
        model.compile("sgd", "mse", **{"jit_compile": False, **compiled})
        return model, data().map(lambda batch: (batch[:, 1:], batch[:, :1]))

    return wb.FunctionProgram(name="rows", make=make)


def compared(program, toggles, steps=24):
    return wb.compare(
        program, toggles, budget_s=0.5, trace_steps=0, equivalence_steps=steps, progress=False
    )


class TestTfData:
    CHOICES = ("prefetch", "parallel_map", "private_threads", "cache")

    @pytest.mark.parametrize("program", [program_of, function_of, keras_of])
    def test_trains_bit_for_bit_the_same(self, program, path):
        def data():
            import tensorflow as tf

            options = tf.data.Options()
            options.experimental_optimization.inject_prefetch = False
            behind = lines(path)
            if program is program_of:
                behind = behind.shuffle(4, seed=1)
            return behind.repeat().with_options(options)

        if program is keras_of:
            # Its own map, behind the repeat, is one that no batch is fused with.
            choices = ("private_threads",)
        else:
            choices = self.CHOICES
        found = compared(program(data), [f"tf_data={choice}" for choice in choices])
        checks = [check for label in found.variants[1:] for check in found.checks_of(label.label)]
        assert checks and all(check.passed for check in checks)
        kinds = {check.kind for check in checks}
        assert "bit-equal losses" in kinds and "equal losses" not in kinds, kinds

    def test_runs_ahead_of_the_step_as_well(self, path):
        found = compared(
            program_of(lambda: lines(path).repeat()), ["tf_data=parallel_map+smart_stage"]
        )
        checks = found.checks_of("smart stage + tf.data parallel map")
        assert len(checks) == 2 and all(check.passed for check in checks)

    @pytest.mark.parametrize("program", [program_of, function_of])
    def test_says_what_is_there_already(self, program, path):
        def data():
            return lines(path).repeat().prefetch(1)

        with pytest.raises(
            OptionError, match=r"cannot have tf\.data prefetch: .* prefetches already"
        ):
            compared(program(data), ["tf_data=prefetch"])


def failing_function(data):
    """A step whose assertion fails; XLA has no assertions and leaves them out."""

    def make():
        import tensorflow as tf

        weights = tf.Variable(tf.ones([WIDTH, 1]))

        @tf.function
        def step(batch):
            tf.debugging.assert_less(tf.reduce_sum(batch), -1e9)
            loss = tf.reduce_mean(tf.square(batch @ weights - 1.0))
            weights.assign_sub(0.01 * tf.reduce_mean(batch, axis=0)[:, tf.newaxis])
            return loss

        return step, data()

    return wb.FunctionProgram(name="rows", make=make)


def texts_function(data):
    def make():
        import tensorflow as tf

        @tf.function
        def step(batch):
            return tf.reduce_sum(tf.strings.to_number(tf.strings.as_string(batch)))

        return step, data()

    return wb.FunctionProgram(name="rows", make=make)


def texts_model(data):
    """A model that computes with texts, which XLA has not."""

    def make():
        import keras
        import tensorflow as tf

        class Texts(keras.layers.Layer):
            def call(self, x):
                return tf.reshape(tf.strings.to_number(tf.strings.as_string(x)), [ROWS, WIDTH - 1])

        model = keras.Sequential([Texts(), keras.layers.Dense(1)])
        model.compile("sgd", "mse", jit_compile=False)
        return model, data().map(lambda batch: (batch[:, 1:], batch[:, :1]))

    return wb.FunctionProgram(name="rows", make=make)


class TestXlaOfAFunction:
    def data(self, path):
        return lambda: lines(path).repeat()

    @pytest.mark.parametrize("program", [function_of, keras_of])
    def test_trains_alike(self, program, path):
        found = compared(program(self.data(path)), ["xla=function"], steps=12)
        assert found.variants[1].label == "XLA function"
        (check,) = found.checks_of("XLA function")
        assert check.passed and check.kind == "equal losses"

    def test_runs_what_xla_makes(self, path):
        program = failing_function(self.data(path))
        with pytest.raises(RunError, match="InvalidArgumentError"):
            wb.trace(program, wb.Optimizations(), steps=2, progress=False)
        setting = wb.Optimizations(chosen=(wb.toggles.XLA.at("function"),))
        assert len(wb.trace(program, setting, steps=2, progress=False).steps()) == 2

    @pytest.mark.parametrize("program", [texts_function, texts_model])
    def test_says_what_xla_cannot_compile(self, program, path):
        words = "XLA cannot compile the step: Detected unsupported operations .*AsString"
        with pytest.raises(OptionError, match=words):
            compared(program(self.data(path)), ["xla=function"])

    def test_says_where_xla_compiles_already(self, path):
        program = keras_of(self.data(path), jit_compile=True)
        with pytest.raises(OptionError, match="XLA compiles the model already"):
            compared(program, ["xla=function"])


def typed_model(data):
    """A model whose layer says itself in what it computes."""

    def make():
        import keras

        model = keras.Sequential([keras.layers.Dense(1, dtype="float32")])
        model.compile("sgd", "mse", jit_compile=False)
        return model, data().map(lambda batch: (batch[:, 1:], batch[:, :1]))

    return wb.FunctionProgram(name="rows", make=make)


class TestPrecision:
    SETTING = wb.Optimizations(chosen=(wb.toggles.PRECISION.at("bfloat16"),))

    def names(self, program, setting):
        nodes = wb.trace(program, setting, steps=2, progress=False).nodes
        return [name for name, op in zip(nodes["name"], nodes["op"], strict=True) if op == "Cast"]

    def test_of_a_keras_model_is_its_policy(self, path):
        def data():
            return lines(path).repeat()

        program = keras_of(data)
        plain = self.names(program, wb.Optimizations())
        cast = self.names(program, self.SETTING)
        assert len(cast) > len(plain)
        # The graph's optimizer would name its own.
        assert not [name for name in cast if "Bf16" in name]

    def test_of_a_model_with_dtypes_of_its_own_is_refused(self, path):
        def data():
            return lines(path).repeat()

        with pytest.raises(OptionError, match="each layer of the model has a dtype of its own"):
            wb.trace(typed_model(data), self.SETTING, steps=2, progress=False)


def environment_program():
    """A program that fails unless its process has these variables."""

    def build(optimizations):
        threads = (os.environ.get("TF_GPU_THREAD_MODE"), os.environ.get("TF_GPU_THREAD_COUNT"))
        zentf = (os.environ.get("TF_ENABLE_ZENDNN_OPTS"), os.environ.get("TF_ENABLE_ONEDNN_OPTS"))
        if threads != ("gpu_private", "2") and zentf != ("1", "0"):
            raise ValueError(f"the process has {threads}, {zentf}")
        return wb.Built(train_op=tf.no_op())

    return wb.Program(name="environment", build=build)


class TestWhatAMachineHasNot:
    """Each process is asked; what a parent may know of its machine is feigned."""

    def traced(self, choice):
        setting = wb.Optimizations(chosen=(choice,))
        return wb.trace(environment_program(), setting, steps=1, progress=False)

    def test_private_threads_need_a_gpu(self, tmp_path, monkeypatch):
        monkeypatch.setattr(gpu_threads, "_DEVICES", tmp_path)
        (tmp_path / "nvidia0").touch()
        if tf.config.list_physical_devices("GPU"):
            assert self.traced(wb.toggles.GPU_THREADS.at("private"))
        else:
            with pytest.raises(OptionError, match="GPU threads private: this TensorFlow sees no"):
                self.traced(wb.toggles.GPU_THREADS.at("private"))

    def test_the_plugin_has_to_be_loaded(self, tmp_path, monkeypatch):
        (tmp_path / "zentf.py").touch()
        monkeypatch.syspath_prepend(str(tmp_path))
        with pytest.raises(OptionError, match="AMD's plugin on: TensorFlow has loaded no plugin"):
            self.traced(wb.toggles.ZENTF.at("on"))

    def test_a_plugin_that_tensorflow_loads_is_there(self, tmp_path, monkeypatch):
        packages = tmp_path / "site-packages"
        folder = packages / "tensorflow-plugins"
        folder.mkdir(parents=True)
        (packages / "zentf.py").touch()
        # TensorFlow loads any library of that folder; this one registers nothing.
        source = tmp_path / "plugin.c"
        source.write_text("void TF_InitKernel(void) {}\n")
        library = str(folder / "libplugin.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, str(source)], check=True)
        monkeypatch.syspath_prepend(str(packages))
        assert len(self.traced(wb.toggles.ZENTF.at("on")).steps()) == 1
