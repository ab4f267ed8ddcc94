"""Toggles of an author's own in real child processes: AUC, failures, hangs, and copied code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time

import cloudpickle
import numpy as np
import pytest

import workbench as wb
from workbench.cli.main import main
from workbench.errors import OptionError, RunError
from workbench.experiments.comparison.results import load_comparison
from workbench.experiments.program.as_code import compare_code
from workbench.experiments.program.settings_json import optimizations_from
from workbench.viz.documents import document

# The child cannot import a test module by name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
DIM = wb.Toggle("dim", [16, 32])
ROWS = 64
SHORT = {"budget_s": 0.5, "trace_steps": 0, "equivalence_steps": 20, "progress": False}


def clicks(count=1):
    """Batches of ids, and labels that are 1 for even ids."""
    import tensorflow as tf

    ids = np.random.RandomState(0).randint(0, 100, (ROWS * count, 4))
    labels = (ids[:, 0] % 2 == 0).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((ids, labels)).repeat().batch(ROWS)


def build(optimizations, scored=True):
    import tensorflow as tf

    v1 = tf.compat.v1
    batch, labels = v1.data.make_one_shot_iterator(clicks()).get_next()
    values = np.random.RandomState(1).normal(size=[100, optimizations[DIM]]).astype(np.float32)
    table = v1.get_variable("table", initializer=values, use_resource=True)
    scores = tf.reduce_sum(tf.nn.embedding_lookup(table, batch[:, 0]), axis=1)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=scores)
    loss = tf.reduce_mean(losses)
    train_op = v1.train.GradientDescentOptimizer(1.0).minimize(loss)
    more = {"labels": labels[:, None], "scores": scores} if scored else {}
    return wb.Built(train_op=train_op, loss=loss, **more)


def program(function=build, name="clicks"):
    return wb.Program(name=name, build=function)


class TestAuc:
    def test_of_both_stands_beside_both_curves(self, tmp_path):
        found = wb.compare(program(), [DIM, "smart_stage+dim=32", "grappler=off"], **SHORT)
        for label in ("dim 32", "smart stage + dim 32"):
            (check,) = [each for each in found.checks_of(label) if each.asked_otherwise]
            assert len(check.losses) == len(check.baseline_losses) == check.steps
            assert 0.5 < check.baseline_auc.value <= 1 and 0.5 < check.auc.value <= 1
            assert check.auc.rows == check.auc.steps * ROWS
            assert check.auc.steps == (check.steps + 1) // 2
        assert all(each.auc is None for each in found.checks_of("Grappler off"))
        staged, plain = found.checks_of("smart stage + dim 32")[0], found.checks_of("dim 32")[0]
        assert staged.auc == plain.auc != plain.baseline_auc
        auc, of_baseline = plain.auc.value, plain.baseline_auc.value
        words = f"Dim 32 {auc:.4f} over 640 rows; Baseline {of_baseline:.4f}"
        assert words in str(found).replace("\N{THIN SPACE}", "")
        report = wb.write_report([found], tmp_path / "report.html").read_text()
        assert words in report.replace("\N{THIN SPACE}", "")
        (first, *_) = document(found)["checks"]
        assert first["auc"]["value"] == plain.auc.value and len(first["losses"]) == first["steps"]
        found.save(tmp_path / "saved")
        assert load_comparison(tmp_path / "saved") == found

    def test_of_one_class_is_undefined(self):
        def build_so(optimizations):
            built = build(optimizations)
            return wb.Built(
                train_op=built.train_op,
                loss=built.loss,
                labels=built.labels * 0,
                scores=built.scores,
            )

        found = wb.compare(program(build_so), [DIM], **SHORT)
        assert "Dim 32 undefined: one class over 640 rows" in str(found)

    def test_of_a_finished_graph(self):
        import tensorflow as tf

        with tf.Graph().as_default() as graph:
            built = build(wb.Optimizations())
        given = {name: getattr(built, name) for name in ("train_op", "loss", "labels", "scores")}
        finished = wb.graph_program(graph, **given)
        found = wb.compare(finished, ["precision=bfloat16"], **SHORT)
        (check,) = [each for each in found.equivalence if each.asked_otherwise]
        assert check.auc.rows == 10 * ROWS and 0.5 < check.auc.value <= 1

    def test_is_left_out_without_labels(self):
        found = wb.compare(program(lambda chosen: build(chosen, scored=False)), [DIM], **SHORT)
        assert found.checks_of("dim 32")[0].auc is None and "AUC" not in str(found)

    def test_of_a_function(self):
        def make(dim=16):
            import tensorflow as tf

            table = tf.Variable(tf.random.stateless_normal([100, dim], [1, 2]))

            @tf.function
            def step(ids, labels):
                with tf.GradientTape() as tape:
                    scores = tf.reduce_sum(tf.gather(table, ids[:, 0]), axis=1)
                    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=scores)
                    loss = tf.reduce_mean(losses)
                table.assign_sub(tf.convert_to_tensor(tape.gradient(loss, table)))
                return {"loss": loss, "labels": labels, "scores": scores}

            return step, clicks()

        found = wb.compare(wb.FunctionProgram(name="step", make=make), [DIM], **SHORT)
        check = found.checks_of("dim 32")[0]
        assert check.auc.value > 0.5 and check.auc != check.baseline_auc

    @pytest.mark.parametrize("outputs", [1, 2])
    def test_of_a_keras_model_of_one_output(self, outputs):
        def make(dim=16):
            import tensorflow as tf

            keras = tf.keras
            ids = keras.Input([4], dtype="int32")
            hidden = keras.layers.Flatten()(keras.layers.Embedding(100, dim)(ids))
            chances = keras.layers.Dense(outputs, activation="sigmoid")(hidden)
            model = keras.Model(ids, chances)
            loss = "binary_crossentropy" if outputs == 1 else "sparse_categorical_crossentropy"
            model.compile("sgd", loss)
            return model, clicks()

        found = wb.compare(wb.FunctionProgram(name="keras", make=make), [DIM], **SHORT)
        check = found.checks_of("dim 32")[0]
        assert len(check.losses) == check.steps > 0
        if outputs == 1:
            assert 0 < check.auc.value < 1 and check.auc.rows == 10 * ROWS
        else:
            assert check.auc is None


def failing(how, where):
    """A program whose step fails at dim 32: "raises", "hangs" or "ends", in "build" or "step"."""

    def fail():
        if how == "hangs":
            time.sleep(1e6)
        elif how == "ends":
            os._exit(3)
        raise ValueError("32 is too wide")

    def build_so(optimizations):
        import tensorflow as tf

        built = build(optimizations)
        if optimizations[DIM] != 32:
            return built
        if where == "build":
            fail()

        def in_step(loss):
            if time.monotonic() > after:
                fail()
            return loss

        # So late that losses are compared, and blocks fail.
        after = time.monotonic() + (0 if where == "step" else 6.0)
        loss = tf.ensure_shape(tf.numpy_function(in_step, [built.loss], tf.float32), [])
        return wb.Built(train_op=tf.group(built.train_op, loss), loss=loss)

    return program(build_so, "fails")


class TestAChoiceThatFails:
    @pytest.mark.parametrize(
        ("how", "where", "words"),
        [
            ("raises", "build", "ValueError: 32 is too wide"),
            ("raises", "step", "ValueError: 32 is too wide"),
            ("ends", "build", "exit code 3"),
            ("hangs", "build", "The run of 'dim 32' has not answered for 4 s"),
            ("hangs", "step", "The run of 'dim 32' has not answered for 4 s"),
        ],
    )
    def test_is_a_sentence_and_the_others_are_measured(self, how, where, words, tmp_path):
        toggle = wb.Toggle("dim", [16, 32, 8])
        begun = time.monotonic()
        found = wb.compare(
            failing(how, where), [toggle, "grappler=off"], answer_limit_s=4.0, **SHORT
        )
        assert time.monotonic() - begun < 60
        assert [each.label for each in found.variants] == ["off", "dim 8", "Grappler off"]
        assert [each.label for each in found.ratios] == ["dim 8", "Grappler off"]
        assert found.checks_of("dim 8") and not found.checks_of("dim 32")
        assert list(found.failed) == ["dim 32"]
        (note,) = [each for each in found.variants[0].notes if "left out" in each]
        assert words in note and "dim 32" in note.lower() and "\n" not in note
        assert note in str(found)
        assert document(found)["failed"] == found.failed
        found.save(tmp_path / "saved")
        assert load_comparison(tmp_path / "saved") == found

    def test_in_a_block_keeps_what_the_others_gave(self):
        toggle = wb.Toggle("dim", [16, 32, 8])
        found = wb.compare(
            failing("raises", "block"),
            [toggle],
            **{**SHORT, "budget_s": 25.0, "equivalence_steps": 5},
        )
        assert [each.label for each in found.variants] == ["off", "dim 8"]
        rounds = found.settings["rounds"]
        assert [len(each.block_steps_per_s) for each in found.variants] == [rounds] * 2
        assert "32 is too wide" in found.failed["dim 32"]

    def test_alone_is_raised(self):
        with pytest.raises(RunError, match="Dim 32: .*ValueError: 32 is too wide"):
            wb.compare(failing("raises", "step"), [DIM], **SHORT)

    def test_as_the_baseline_is_raised(self):
        with pytest.raises(RunError, match="32 is too wide"):
            wb.compare(
                failing("raises", "build"),
                [wb.Toggle("dim", [32, 16, 8])],
                **SHORT,
            )

    def test_by_losses_that_are_no_numbers_is_said_with_the_step(self):
        def build_so(optimizations):
            import tensorflow as tf

            built = build(optimizations)
            if optimizations[DIM] == 16:
                return built
            steps = tf.compat.v1.train.get_or_create_global_step()
            with tf.control_dependencies([built.train_op]):
                count = tf.compat.v1.assign_add(steps, 1)
            broken = tf.where(count >= 3, float("nan"), built.loss)
            return wb.Built(train_op=count, loss=broken, labels=built.labels, scores=built.scores)

        found = wb.compare(program(build_so), [DIM], **SHORT)
        words = "dim 32 beside dim 16, as was asked: this is another training, whose loss is no "
        assert f"{words}finite number from step 3 on (nan)" in str(found)
        # In the table, and in the answer where it is the best.
        assert "dim 32 beside dim 16, no finite loss from step 3 on" in str(found)
        assert len(found.variants) == 2


PROGRAM_OF_SCRIPT = """
import json
import workbench as wb


def build(optimizations):
    import tensorflow as tf

    v1 = tf.compat.v1
    weights = v1.get_variable("w", [optimizations["dim"]], use_resource=True)
    loss = tf.reduce_mean(tf.square(weights - 1.0))
    assert optimizations["layout"] in ("rows", "columns")
    return wb.Built(train_op=v1.train.GradientDescentOptimizer(0.1).minimize(loss), loss=loss)


program = wb.Program(name="mine", build=build)
"""


def test_copied_code_measures_the_same_setting_again(tmp_path):
    layout = wb.Toggle("layout", ["rows", "columns"], label="how", training="same")
    setting = wb.Optimizations(
        chosen=(DIM.at(32), layout.at("columns"), wb.toggles.GRAPPLER.at("off"))
    )
    code = compare_code([setting], wb.Optimizations(), budget_s=0.5, trace_steps=0)
    shown = 'print(json.dumps(comparison.settings["configuration"]["settings"]))'
    script = tmp_path / "again.py"
    # The last line of a cell shows the comparison.
    script.write_text(
        f'{PROGRAM_OF_SCRIPT}\n\nif __name__ == "__main__":\n' + indented(code, shown)
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    baseline, again = map(optimizations_from, json.loads(done.stdout.splitlines()[-1]))
    assert again == setting
    assert (baseline["dim"], baseline["layout"]) == (16, "rows")


def indented(*parts):
    return textwrap.indent("\n".join(parts), "    ")


class TestTwoBuilds:
    def test_in_text_report_json_and_saved(self, tmp_path, capsys):
        def wider(optimizations):
            return build(wb.Optimizations(chosen=(DIM.at(32),)))

        found = wb.compare({"old": build, "new": wider}, **SHORT)
        (check,) = found.checks_of("build new")
        assert check.toggles == "build new beside build old" and check.auc.value > 0.5
        assert "Build new: it trains another way, as was asked" in str(found)
        assert document(found)["variants"][1]["label"] == "build new"
        assert found.command == "wb.compare({'old': build, 'new': wider}, budget_s=0.5)"
        found.save(tmp_path / "saved")
        again = load_comparison(tmp_path / "saved")
        report = wb.write_report([again], tmp_path / "report.html").read_text()
        assert "Build new" in report and str(again) == str(found)
        assert main(["rerun", str(tmp_path / "saved")]) == 2
        assert "of 'old and new', which is none of the models" in capsys.readouterr().err

    def test_names_that_no_table_shows_are_one_sentence(self):
        for builds in (
            {"a\nb": build, "c": build},
            {"": build, "c": build},
            {1: build, "1": build},
        ):
            with pytest.raises(OptionError):
                wb.compare(builds, **SHORT)


def test_a_keras_model_is_made_with_the_choice():
    def make(optimizations):
        import tensorflow as tf

        ids = tf.keras.Input([4], dtype="int32")
        hidden = tf.keras.layers.Embedding(100, optimizations["dim"])(ids)
        chance = tf.keras.layers.Dense(1, activation="sigmoid")(tf.keras.layers.Flatten()(hidden))
        model = tf.keras.Model(ids, chance)
        model.compile("sgd", "binary_crossentropy")
        return model, clicks()

    found = wb.compare(wb.FunctionProgram(name="keras", make=make), [DIM], **SHORT)
    (check,) = [each for each in found.checks_of("dim 32") if each.losses]
    assert check.losses != check.baseline_losses
