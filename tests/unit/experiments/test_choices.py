"""Toggles with choices: an author's own, the environment's and TensorFlow's, as values."""

from __future__ import annotations

import argparse
import importlib.util
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.cli.arguments import own_toggle, require_toggles, toggle_or_own
from workbench.core.toggles.stock import gpu_threads
from workbench.errors import DataError, OptionError
from workbench.experiments.program.as_code import options_code, program_code
from workbench.experiments.program.builds import builds_program
from workbench.experiments.program.function_program import arguments_of_make, require_possible
from workbench.experiments.program.settings_json import optimizations_from, to_json
from workbench.experiments.program.toggles import TOGGLES, optimizations_of
from workbench.experiments.program.variant import require_few_environments, variants_of

DIM = wb.Toggle("dim", [16, 32, 64])
OPTIONS = (wb.StageOptions(), wb.SmartStageOptions())
GRAPH = wb.Program(name="mine", build=lambda optimizations: None)


def on(*choices, **fields):
    return wb.Optimizations(chosen=choices, **fields)


class TestToggle:
    @pytest.mark.parametrize(
        ("name", "choices", "words"),
        [
            ("", [1, 2], "has no name"),
            ("1st", [1, 2], "has no name"),
            ("a-b", [1, 2], "has no name"),
            ("a" * 65, [1, 2], "has no name"),
            ("a", [1], "expected 2 to 64"),
            ("a", [], "expected 2 to 64"),
            ("a", range(65), "expected 2 to 64"),
            ("a", [1, 1], "a choice twice"),
            ("a", [1, "1"], "a choice twice"),
            ("a", [1, None], "None is no choice"),
            ("a", [[1], [2]], "is no choice"),
            ("a", ["x", "y\n"], "is no choice"),
            ("a", ["x", ""], "is no choice"),
            ("a", ["x", "y" * 81], "is no choice"),
            ("a", "16", "expected a list"),
            ("a", 16, "expected a list"),
        ],
    )
    def test_says_what_is_wrong(self, name, choices, words):
        with pytest.raises(OptionError, match=words):
            wb.Toggle(name, choices)

    def test_has_its_choices_alone(self):
        assert DIM.at(32).value == 32
        with pytest.raises(OptionError, match="no choice 7; expected one of 16, 32, 64"):
            DIM.at(7)
        # Python takes True for 1.
        with pytest.raises(OptionError, match="no choice True"):
            wb.Toggle("a", [0, 1]).at(True)

    def test_the_program_reads_it(self):
        setting = on(DIM.at(32))
        assert setting["dim"] == setting[DIM] == 32
        assert wb.Optimizations()[DIM] == 16
        with pytest.raises(OptionError, match="no toggle 'dim', only none"):
            wb.Optimizations()["dim"]
        with pytest.raises(OptionError, match="'dim' stands at two choices"):
            on(DIM.at(32), DIM.at(16))

    def test_labels_have_what_is_switched(self):
        assert on(DIM.at(16)).label() == "off"
        jit = wb.Toggle("use_jit", [False, True])
        assert on(jit.at(True), DIM.at(32)).label() == "dim 32 + use jit true"


class TestNames:
    def test_a_choice_is_joined_with_others(self):
        setting = optimizations_of("smart_stage+grappler=off+dim=64", *OPTIONS, [DIM])
        assert setting["grappler"] == "off" and setting["dim"] == 64 and setting.smart_stage

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("grappler", "grappler=default, grappler=off"),
            ("grappler=on", "no choice 'on'"),
            ("xla=clusters+xla=off", "names one optimization twice"),
            ("dim=32", "there is no toggle 'dim'"),
        ],
    )
    def test_of_what_is_wrong(self, text, words):
        with pytest.raises(OptionError, match=words):
            optimizations_of(text, *OPTIONS)

    @pytest.mark.parametrize("name", [*TOGGLES, "batch_size", "inter_op_threads", "xla"])
    def test_that_are_taken_are_an_error(self, name):
        with pytest.raises(OptionError, match=f"another toggle is named '{name}'"):
            variants_of([wb.Toggle(name, [0, 1])], *OPTIONS)

    @pytest.mark.parametrize("name", ["stage", "batch_size", "xla"])
    def test_that_are_taken_are_an_error_at_every_door(self, name):
        words = f"another toggle is named '{name}'"
        with pytest.raises(OptionError, match=words):
            require_possible(GRAPH, on(wb.Toggle(name, [0, 1]).at(1)))
        with pytest.raises(OptionError, match=words):
            require_toggles(None, [own_toggle(f"{name}=0,1")])
        with pytest.raises(DataError, match=words):
            optimizations_from(to_json(on(wb.Toggle(name, [0, 1]).at(1))))
        with pytest.raises(OptionError, match=words):
            variants_of([on(wb.Toggle(name, [0, 1]).at(1))], *OPTIONS)

    def test_of_a_command_line_may_be_joined(self):
        assert toggle_or_own("dim=32+grappler=off") == "dim=32+grappler=off"
        require_toggles(["dim=32+grappler=off"], [DIM])
        for wrong in (["dim=7"], ["width=32"], ["dim"]):
            with pytest.raises(OptionError):
                require_toggles(wrong, [DIM])
        for wrong in ("turbo", "turbo+stage", "grappler=on", "1st=2"):
            with pytest.raises(argparse.ArgumentTypeError):
                toggle_or_own(wrong)

    def test_of_a_command_line(self):
        assert own_toggle("dim=16,32.5,true,big").choices == (16, 32.5, True, "big")
        for wrong in ("dim", "dim=16", "=1,2", "d-m=1,2"):
            with pytest.raises(Exception, match="choices|name"):
                own_toggle(wrong)


@pytest.mark.parametrize("toggle", wb.toggles.STOCK, ids=lambda toggle: toggle.name)
class TestEachOfTensorFlow:
    def test_is_exported_and_documented(self, toggle):
        assert getattr(wb.toggles, toggle.name.upper()) is toggle
        page = (Path(__file__).parents[3] / "docs" / "toggles.md").read_text()
        row = next(line for line in page.splitlines() if line.startswith(f"| `{toggle.name}` |"))
        assert f"| {', '.join(toggle.choices)} |" in row
        trains = {toggle.at(choice).training.value for choice in toggle.choices[1:]}
        assert all(word in row.split("|")[4] for word in trains)
        assert toggle.help.endswith(".") and toggle.title

    def test_has_lines_of_code_for_each_choice(self, toggle):
        for choice in toggle.choices[1:]:
            for is_function in (False, True):
                lines = toggle.code(choice, is_function=is_function)
                assert lines and all(0 < len(line) <= 100 for line in lines)
                compile("\n".join(lines), "code", "exec")

    def test_at_its_usual_choice_asks_nothing_of_a_process(self, toggle):
        usual = toggle.at(toggle.choices[0])
        assert usual.is_usual and not on(usual).switched
        assert toggle.name == "onednn" or not toggle.environment(usual.value)


class TestVariants:
    def test_each_choice_is_one_and_the_baseline_has_the_usual_one(self):
        found = variants_of([DIM, "xla=clusters"], *OPTIONS)
        assert [each.label for each in found] == ["off", "dim 32", "dim 64", "XLA clusters"]
        assert [each.optimizations["dim"] for each in found] == [16, 32, 64, 16]

    def test_the_baseline_has_the_usual_choice_of_what_a_setting_has(self):
        off, dim, grappler = variants_of([on(DIM.at(32)), "grappler=off"], *OPTIONS)
        assert [each.optimizations["dim"] for each in (off, dim, grappler)] == [16, 32, 16]
        with pytest.raises(OptionError, match="another toggle is named 'dim'"):
            variants_of([on(DIM.at(32)), on(wb.Toggle("dim", [8, 9]).at(9))], *OPTIONS)

    def test_of_several_builds(self):
        program, toggles = builds_program({"old": lambda _: 1, "new": lambda _: 2}, None)
        off, new = (each.optimizations for each in variants_of(toggles, *OPTIONS))
        assert (program.build(off), program.build(new)) == (1, 2)
        assert new.label() == "build new"
        for wrong in ({"old": len}, {"old": len, "new": 3}):
            with pytest.raises(OptionError):
                builds_program(wrong, None)

    def test_what_trains_otherwise_is_said(self):
        off, dim, xla = (
            variants_of([DIM, "xla=clusters"], *OPTIONS)[::2]
            + [variants_of([DIM, "xla=clusters"], *OPTIONS)[3]][:1]
        )
        assert dim.other_training(off) == "dim 64 beside dim 16"
        assert off.other_training(off) == xla.other_training(off) == ""

    def test_an_environment_of_its_own_takes_a_process(self):
        many = wb.toggles.EnvironmentToggle("A", [str(n) for n in range(6)])
        found = variants_of([many], *OPTIONS)
        assert [each.environment for each in found[:2]] == [{"A": "0"}, {"A": "1"}]
        with pytest.raises(OptionError, match="6 environments"):
            require_few_environments(found)
        require_few_environments(found[:4])


class TestRefusals:
    @pytest.mark.parametrize(
        ("setting", "words"),
        [
            (on(wb.toggles.CALLER_THREAD.at("on"), executor="inline"), "exclude each other"),
            (on(wb.toggles.CALLER_THREAD.at("on"), inter_op_threads=2), "exclude each other"),
            (on(wb.toggles.PRECISION.at("bfloat16"), fused_embeddings="auto"), "float32"),
            (on(wb.toggles.XLA.at("clusters"), fused_embeddings="v2"), "XLA has no fused lookups"),
            (on(wb.toggles.XLA.at("function")), "no tf.function to compile as a whole"),
        ],
    )
    def test_of_a_graph(self, setting, words, monkeypatch):
        monkeypatch.setattr("workbench._native.require_executors", lambda what: None)
        with pytest.raises(OptionError, match=words):
            require_possible(GRAPH, setting)

    @pytest.mark.parametrize("toggle", ["XLA", "CALLER_THREAD"])
    def test_of_a_function(self, toggle):
        program = wb.FunctionProgram(name="mine", make=lambda: None)
        toggle = getattr(wb.toggles, toggle)
        with pytest.raises(OptionError, match="tf.function"):
            require_possible(program, on(toggle.at(toggle.choices[1])))

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"smart_stage": wb.SmartStageOptions()}, "smart_stage .* so it is not cut"),
            ({"fused_embeddings": "auto"}, "auto fused .* has no fused ops"),
            ({"fused_embeddings": "v2"}, "fused lookups .* has no fused ops"),
        ],
    )
    def test_of_a_function_that_xla_compiles(self, fields, words):
        program = wb.FunctionProgram(name="mine", make=lambda: None)
        with pytest.raises(OptionError, match=f"XLA function and {words}"):
            require_possible(program, on(wb.toggles.XLA.at("function"), **fields))
        require_possible(program, on(wb.toggles.XLA.at("function")))

    def test_of_threads_of_a_gpu(self, tmp_path, monkeypatch):
        def refusal():
            return wb.toggles.GPU_THREADS.refusal("private", is_function=False)

        monkeypatch.setattr(gpu_threads, "_DEVICES", tmp_path)
        for name in ("CUDA_VISIBLE_DEVICES", "TF_GPU_THREAD_MODE"):
            monkeypatch.delenv(name, raising=False)
        assert refusal() == "this machine has no NVIDIA GPU"
        (tmp_path / "nvidia0").touch()
        assert refusal() == ""
        monkeypatch.setenv("TF_GPU_THREAD_MODE", "gpu_private")
        assert "TF_GPU_THREAD_MODE=gpu_private already" in refusal()
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
        assert refusal() == "CUDA_VISIBLE_DEVICES hides the GPUs of this machine"

    def test_of_a_plugin_that_is_not_installed(self, tmp_path, monkeypatch):
        if importlib.util.find_spec("zentf") is None:
            with pytest.raises(OptionError, match="package zentf is not installed; .*--no-deps"):
                require_possible(GRAPH, on(wb.toggles.ZENTF.at("on")))
        (tmp_path / "zentf.py").touch()
        monkeypatch.syspath_prepend(str(tmp_path))
        require_possible(GRAPH, on(wb.toggles.ZENTF.at("on")))

    def test_make_has_a_parameter_for_each_own_toggle(self):
        program = wb.FunctionProgram(name="mine", make=lambda dim=16: None)
        setting = on(DIM.at(32), wb.toggles.GRAPPLER.at("off"))
        assert arguments_of_make(program, setting) == {"dim": 32}
        takes_all = wb.FunctionProgram(name="mine", make=lambda **named: None)
        assert arguments_of_make(takes_all, on(DIM.at(32))) == {"dim": 32}
        with pytest.raises(OptionError, match="make has no parameter 'width'"):
            require_possible(program, on(wb.Toggle("width", [1, 2]).at(2)))

    def test_make_may_have_the_whole_setting(self):
        setting = on(DIM.at(32), wb.Toggle("width", [1, 2]).at(2))
        read = lambda optimizations, dim=16: (optimizations["width"], dim)  # noqa: E731
        program = wb.FunctionProgram(name="mine", make=read)
        require_possible(program, setting)
        assert read(**arguments_of_make(program, setting)) == (2, 32)


SHOWN = st.text(max_size=20).filter(lambda text: text and text.isprintable())
PLAIN = st.one_of(SHOWN, st.integers(-9, 9), st.booleans(), st.floats(-9, 9))


@given(
    st.from_regex(r"[a-z_][a-z0-9_]{0,9}", fullmatch=True),
    st.lists(PLAIN, min_size=2, max_size=5, unique_by=str),
    st.one_of(st.just(""), SHOWN),
    st.sampled_from(list(wb.toggles.Training)),
    st.data(),
)
def test_a_setting_survives_json_and_code(name, choices, words, training, data):
    toggle = wb.Toggle(name, choices, label=words, help=words, training=training)
    stock = data.draw(st.sampled_from(wb.toggles.STOCK))
    if name == stock.name:
        return
    setting = on(toggle.at(data.draw(st.sampled_from(choices))), stock.at(stock.choices[-1]))
    assert optimizations_from(json.loads(json.dumps(to_json(setting)))) == setting
    assert eval(options_code(setting), {"wb": wb}) == setting


def test_a_file_gives_no_process_a_variable():
    saved = to_json(on(wb.toggles.EnvironmentToggle("LD_PRELOAD", ["x", "y"]).at("y")))
    read = optimizations_from(json.loads(json.dumps(saved)))
    assert read.label() == "LD_PRELOAD y"
    assert not read.chosen[0].toggle.environment("y")
    with pytest.raises(OptionError, match="give wb.toggles.EnvironmentToggle in Python"):
        require_possible(GRAPH, read)


@pytest.mark.parametrize(
    "chosen",
    [
        3,
        [3],
        [{}],
        [{"of": "own", "name": "dim", "choice": 7, "choices": [16, 32]}],
        [{"of": "own", "name": "dim", "choice": 16, "choices": 16}],
        [{"of": "own", "name": "dim", "choice": 16, "choices": [16, 32], "training": "no"}],
        [{"of": "own", "name": 3, "choice": 16, "choices": [16, 32]}],
        [{"of": "own", "name": "dim", "choice": [16], "choices": [16, 32]}],
        [{"of": "nobody", "name": "dim", "choice": 16, "choices": [16, 32]}],
        [{"of": "TensorFlow", "name": "warp", "choice": "on"}],
        [{"of": "TensorFlow", "name": "xla", "choice": "warp"}],
    ],
)
def test_a_damaged_choice_is_one_sentence(chosen):
    with pytest.raises(DataError):
        optimizations_from({"chosen": chosen})


def test_code_of_a_setting():
    setting = on(
        DIM.at(32), wb.toggles.ONEDNN.at("off"), wb.toggles.GRAPPLER.at("off"), intra_op_threads=1
    )
    lines = program_code(setting, GRAPH).splitlines()
    assert lines[0] == 'os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # before TensorFlow is imported'
    at = lines.index("config = tf.compat.v1.ConfigProto()")
    assert lines[at + 1 : at + 3] == [
        "# your own: dim = 32",
        "config.graph_options.rewrite_options.disable_meta_optimizer = True",
    ]


def test_code_of_the_data_stands_before_the_model():
    setting = on(wb.toggles.TF_DATA.at("private_threads"), wb.toggles.ZENTF.at("on"))
    lines = program_code(setting, GRAPH).splitlines()
    assert lines[0].startswith('os.environ["TF_ENABLE_ZENDNN_OPTS"] = "1"')
    assert lines[2:6] == [
        "options = tf.data.Options()",
        "options.threading.private_threadpool_size = len(os.sched_getaffinity(0))",
        "dataset = dataset.with_options(options)",
        "loss, train_op = build_my_model(batch)",
    ]
