"""The equivalence receipt: one line for all that train the same, a row for each exception."""

from __future__ import annotations

from workbench.experiments.measurement.equivalence import Equivalence
from workbench.viz.comparison.receipt import receipt

LOSSES, BATCHES = "bit-equal losses", "same batches"
SEED = "from the same seed, one prefetch thread"


def check(label, kind=LOSSES, *, passed=True, steps=200, detail=SEED):
    return Equivalence(label=label, kind=kind, passed=passed, steps=steps, detail=detail)


def test_one_variant_keeps_all_that_its_checks_say():
    found = receipt([check("stage"), check("stage", BATCHES, steps=391, detail="each once")])
    assert found.sentence == (
        f"Stage trains the same: bit-equal losses over 200 steps, {SEED}; same batches over 391 "
        "steps, each once."
    )
    assert (found.exceptions, found.checks) == ((), ())


def test_many_that_train_the_same_are_one_line():
    labels = [f"v{n}" for n in range(7)]
    found = receipt(
        [
            *(check(label) for label in labels[:5]),
            *(check(label, "equal losses", detail=f"{label} apart") for label in labels[5:]),
            *(
                check(label, BATCHES, steps=391 + n % 2, detail=f"{n} once")
                for n, label in enumerate(labels)
            ),
        ]
    )
    assert found.sentence == (
        f"All 7 variants train the same: bit-equal losses over 200 steps (5 of them), {SEED}; "
        "equal losses over 200 steps (2 of them); same batches over 391 to 392 steps."
    )
    assert found.exceptions == ()
    assert len(found.checks) == 14


def test_exceptions_have_a_row_each():
    wrong = check("fused V1", passed=False, detail="differ from step 3 on")
    found = receipt([check("stage"), wrong, check("fused V1", BATCHES), check("stage", BATCHES)])
    assert found.sentence.startswith("1 of 2 variants trains the same: bit-equal losses over 200")
    (row,) = found.exceptions
    assert (row.label, row.kind, row.result, row.harm, row.detail) == (
        "Fused V1",
        "Bit-equal losses",
        "no, 200 steps compared",
        True,
        "differ from step 3 on",
    )


def test_when_none_trains_the_same():
    one, other = check("one", passed=False), check("other", passed=False)
    assert receipt([one]).sentence == "One does not train the same."
    assert receipt([one, other]).sentence == "No variant trains the same."


def test_batches_alone_do_not_say_that_training_is_the_same():
    found = receipt([check("stage", BATCHES, detail="each once")])
    assert found.sentence == "Stage reads the same batches: over 200 steps, each once."


def test_without_checks_it_says_so():
    assert receipt([]).sentence == "Losses and batches were not compared."
