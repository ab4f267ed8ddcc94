"""Results as plain text: aligned, complete, and safe for a terminal."""

from __future__ import annotations

from tests.builders.comparisons import comparison, variant
from tests.builders.traces import staged_trace
from workbench.core.metrics import step_metrics
from workbench.viz.text import comparison_table, metrics_text

NBSP = "\u00a0"


def test_the_answer_the_table_and_what_it_rests_on():
    assert comparison_table(comparison()).replace(NBSP, " ") == (
        "dlrm: Stage trains 1.83× as fast as all off (95 % interval 1.80–1.86), and the training "
        "is the same.\n"
        "\n"
        "Variant     steps/s  step, median     ratio       95 %  verdict   training\n"
        "All off  39.8 ± 0.4       25.1 ms  baseline                       reference\n"
        "Stage    72.8 ± 0.8       13.7 ms     1.83×  1.80–1.86  ▲ faster  "
        "bit-equal losses, same batches\n"
        "\n"
        "95 % interval of 6 paired blocks of 40 to 73 steps.\n"
        "1 / max(T_input, T_compute): 74.1 steps/s. T_input 13.5 ms, T_compute 11.9 ms; "
        "stage reaches 98.2 % (97.4 %–99.1 %).\n"
        "Stage, Bit-equal losses: yes, 200 steps compared, from the same seed, one prefetch "
        "thread.\n"
        "Stage, Same batches: yes, 391 steps compared, each exactly once over a whole epoch, "
        "2 prefetch threads."
    )


def test_names_of_any_script_stay_aligned():
    rows = (variant("ステージ", 40, 1), variant("e\u0301te", 70, 1))
    lines = comparison_table(comparison(variants=rows, ratios=(), equivalence=(), bounds=()))
    wide, narrow = lines.splitlines()[3:5]
    # four wide letters take eight columns; a combining accent takes none
    assert wide.startswith("ステージ  40.0")
    assert narrow.startswith("E\u0301te       70.0")


def test_a_name_cannot_steer_the_terminal():
    shown = comparison_table(comparison(program="evil\x1b[2J\u2028name\r\n"))
    assert shown.startswith("evil\ufffd[2J\ufffdname\ufffd\ufffd: ")
    assert "\x1b" not in shown


def test_metrics_as_text():
    lines = metrics_text(step_metrics(staged_trace())).splitlines()
    assert lines[0].split() == ["Per", "step", "or", "run", "Trace"]
    assert lines[1].split() == ["Steps", "traced", "4"]
    assert len({len(line) for line in lines}) == 1
