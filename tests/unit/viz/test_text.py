"""Results as plain text: aligned, complete, and safe for a terminal."""

from __future__ import annotations

import dataclasses

from tests.builders.comparisons import comparison, planned_comparison, variant
from tests.builders.plans import predictions, towers
from tests.builders.traces import staged_trace
from workbench.core.planning.planner import plan_stages
from workbench.core.trace.metrics import step_metrics
from workbench.viz.boundary.text import boundary_text
from workbench.viz.boundary.view import boundary_view
from workbench.viz.outlets import text_of

NBSP = "\u00a0"


def test_the_answer_the_table_and_what_it_rests_on():
    assert text_of(comparison()).replace(NBSP, " ") == (
        "dlrm: Stage trains 1.83× as fast as all off (95 % interval 1.80–1.86), and the training "
        "is the same.\n"
        "Next: Train with wb.staged(…).\n"
        "\n"
        "Variant     steps/s  step, median     ratio       95 %  verdict   training\n"
        "All off  39.8 ± 0.4       25.1 ms  baseline                       reference\n"
        "Stage    72.8 ± 0.8       13.7 ms     1.83×  1.80–1.86  ▲ faster  "
        "bit-equal losses, same batches\n"
        "\n"
        "95 % interval of 6 paired blocks of 40 to 73 steps.\n"
        "1 / max(T_input, T_compute): 74.1 steps/s. T_input 13.5 ms, T_compute 11.9 ms; "
        "stage reaches 98.2 % (97.4 %–99.1 %).\n"
        "Stage trains the same: bit-equal losses over 200 steps, from the same seed, one prefetch "
        "thread; same batches over 391 steps, each exactly once over a whole epoch, 2 prefetch "
        "threads."
    )


def test_names_of_any_script_stay_aligned():
    rows = (variant("ステージ", 40, 1), variant("e\u0301te", 70, 1))
    lines = text_of(comparison(variants=rows, ratios=(), equivalence=(), bounds=()))
    wide, narrow = lines.splitlines()[4:6]
    # four wide letters take eight columns; a combining accent takes none
    assert wide.startswith("ステージ  40.0")
    assert narrow.startswith("E\u0301te       70.0")


def test_a_name_cannot_steer_the_terminal():
    shown = text_of(comparison(program="evil\x1b[2J\u2028name\r\n"))
    assert shown.startswith("evil\\x1b[2J\\u2028name\\r\\n: ")
    assert "\x1b" not in shown


def test_metrics_as_text():
    lines = text_of(step_metrics(staged_trace())).splitlines()
    assert lines[0].split() == ["Per", "step", "or", "run", "Trace"]
    assert lines[1].split() == ["Steps", "traced", "4"]
    assert len({len(line) for line in lines}) == 1


def test_a_prediction_is_a_column_of_its_own():
    lines = text_of(planned_comparison()).replace(NBSP, " ").splitlines()
    assert lines[3].split()[-3:] == ["predicted", "verdict", "training"]
    assert lines[6].split()[:6] == ["Smart", "stage", "80.1", "±", "0.9", "12.5"]
    assert "1.98–2.05      1.95×  ▲ faster" in lines[6]


def test_a_boundary_as_text():
    made = dataclasses.replace(plan_stages(towers()), predictions=predictions(12.0, 8.0))
    assert boundary_text(boundary_view(made)).replace(NBSP, " ") == (
        "5 nodes run ahead of the step in two chained stages; 4 tensors travel to the compute "
        "side. 7 more depend on the input and stay (inside control flow 3, reads a variable 2, "
        "stateful op 2), 4 of them behind table_0…table_1. Predicted: 1.50× as fast as un-staged.\n"
        "\n"
        "Stage “smart_stage_input” (1 thread, buffer of 1 item): 2 tensors travel: string.\n"
        "  next  IteratorGetNext  → 2\n"
        "\n"
        "Stage “smart_stage” (1 thread, buffer of 1 item): 4 tensors travel: 2 string, 2 int64.\n"
        "  tower_0…tower_1/split  2 × StringSplit\n"
        "  tower_0…tower_1/hash   2 × StringToHashBucketFast  → 2\n"
        "\n"
        "Compute side (the step, 12 nodes)\n"
        "  Next to the boundary\n"
        "    net/lookup…lookup_1  2 × GatherV2   reads 2, reads a variable\n"
        "    noise                RandomUniform  reads 1, stateful op\n"
        "    loop/Enter           Enter          reads 1, inside control flow\n"
        "  Further on\n"
        "    net/dropped                   Mul       stateful op\n"
        "    net/joined                    ConcatV2  inside control flow\n"
        "    loss                          Mean      inside control flow\n"
        "    Does not depend on the input  5 nodes\n"
        "\n"
        "Refused: inside control flow 3, reads a variable 2, stateful op 2; explain(node) says "
        "why.\n"
        "Held back by     op              reason               nodes behind it  behind it alone\n"
        "table_0…table_1  2 × VariableV2  reads a variable                   4                2\n"
        "noise            RandomUniform   stateful op                        4                1\n"
        "loop/Enter       Enter           inside control flow                3                1\n"
        "\n"
        "New stage for the input: 'next' is read in 'smart_stage_input', so that pre-processing "
        "never waits for the input\n"
        "New stage: widest in two chained stages: everything that may run ahead does\n"
        "\n"
        "Predicted              step  at best  ratio  limited by\n"
        "  Un-staged         12.0 ms  12.0 ms  1.00×  the step\n"
        "→ Widest, 1 thread   8.0 ms   7.2 ms  1.50×  the cores"
    )
