"""The verdict of a gate in words and as Markdown; names that would be more than names."""

from __future__ import annotations

import re

import pytest

from tests.builders.alignments import staged, unstaged
from tests.builders.comparisons import comparison, every_toggle_comparison, variant
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.regression.gate import gate, gate_against
from workbench.experiments.regression.regressions import regressions
from workbench.viz.comparison.gate_markdown import code, gate_markdown
from workbench.viz.comparison.gate_text import gate_text


def of(low, high, label="stage", **changes):
    found = Ratio(label=label, ratio=(low + high) / 2, low=low, high=high, verdict="slower")
    return comparison(ratios=(found,), **changes)


@pytest.mark.parametrize(
    ("low", "high", "strict", "said"),
    [
        (1.0, 1.1, False, "Gate: holds. The one variant is not more than 3 % slower than all off"),
        (0.8, 0.9, False, "Gate: slower. stage (0.85×, 0.80–0.90) is more than 3 % slower than"),
        (0.9, 1.1, False, "as the interval includes the limit, which passes; measure longer to"),
        (0.9, 1.1, True, "as the interval includes the limit, which fails a strict gate."),
    ],
)
def test_the_verdict_is_a_sentence(low, high, strict, said):
    text = gate_text(gate(of(low, high), 0.03, strict=strict)).replace("\u00a0", " ")
    assert said in text


def test_several_variants_are_counted_or_named():
    text = gate_text(gate(every_toggle_comparison(), 0.03)).replace("\u00a0", " ")
    assert text == (
        "Gate: slower. inline executor (0.78×, 0.76–0.81) is more than 3 % slower than all off, "
        "by the whole 95 % interval."
    )
    text = gate_text(gate(every_toggle_comparison(), 0.3)).replace("\u00a0", " ")
    assert text.startswith("Gate: holds. None of 7 variants is more than 30 % slower than all off")


def test_markdown_has_verdict_table_ops_and_command():
    variants = (variant("off", 100, 1, trace=staged()), variant("stage", 60, 1, trace=unstaged()))
    now = of(0.5, 0.6, variants=variants)
    found = gate(now, 0.03)
    text = gate_markdown(found, now, regressions(found, now)).replace("\u00a0", " ")
    assert text.startswith("### ❌ Workbench: slower, <code>dlrm</code>\n\nSlower. <code>stage")
    rows = [each for each in text.splitlines() if each.startswith("|")]
    heads, line, row = rows[:3]
    assert heads.count("|") == line.count("|") == row.count("|") == 7
    assert row == "| <code>stage</code> | 60.0 ± 1.0 | 0.55× | 0.50–0.60 | ❌ slower | the same |"
    assert "<details><summary>What takes longer in <code>stage</code> than in <code>off" in text
    assert "| on the critical path |" in text
    assert "```text\nworkbench compare dlrm --toggle stage --data clicks.tsv\n```\n" in text


def test_an_earlier_comparison_is_named():
    text = gate_markdown(gate_against(comparison(), comparison(), 0.03), comparison())
    assert "✅ Workbench: holds" in text
    assert "to <code>the earlier comparison</code>" in text
    assert "- <code>The two were measured one after the other" in text
    assert "| reference |" in text


HOSTILE = [
    "a|b",
    "</code><script>alert(1)</script>",
    "@everyone #1 :tada:",
    "[x](javascript:alert(1))",
    "https://example.com www.example.com",
    "*a* _b_ `c` ~~d~~",
    "line\nbreak\r| x |",
    "\u202eltr",
    "\udce9",
    "&lt;b&gt;",
    "\\|",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_stays_a_name(name):
    found = code(name)
    inner = found.removeprefix("<code>").removesuffix("</code>")
    assert re.fullmatch(r"(&#\d+;|[^\W_]|[ ,+%()-])*", inner)
    now = of(0.8, 0.9, label=name, program=name, command=f"workbench {name}")
    text = gate_markdown(gate(now, 0.03), now)
    assert "<script>" not in text.split("```text")[0]
    assert len([line for line in text.splitlines() if line.startswith("|")]) == 3


def test_a_long_name_is_cut():
    assert len(re.sub("&#8230;", "…", code("x" * 500))) == len("<code></code>") + 120


def test_a_command_cannot_end_its_block():
    now = of(1.0, 1.1, command="workbench ```` # heading")
    assert gate_markdown(gate(now, 0.03), now).endswith(
        "`````text\nworkbench ```` # heading\n`````\n"
    )
