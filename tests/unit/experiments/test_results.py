"""A comparison as a value: its traces beside each other."""

from __future__ import annotations

import pytest

from tests.builders.alignments import staged, unstaged
from tests.builders.comparisons import comparison, variant
from tests.builders.traces import MS
from workbench.errors import OptionError


def test_two_of_its_variants_are_aligned():
    rows = (variant("off", 100, 1, trace=unstaged()), variant("stage", 160, 1, trace=staged()))
    alignment = comparison(variants=rows).align("off", "stage")
    assert (alignment.a.label, alignment.b.label) == ("off", "stage")
    assert alignment.difference_ns == -4 * MS


def test_a_variant_that_cannot_be_aligned():
    rows = (variant("off", 100, 1, trace=unstaged()), variant("stage", 160, 1))
    measured = comparison(variants=rows)
    with pytest.raises(OptionError) as error:
        measured.align("off", "smart stage")
    assert str(error.value) == "there is no variant 'smart stage'; expected one of off, stage"
    with pytest.raises(OptionError) as error:
        measured.align("off", "stage")
    assert str(error.value) == "variant 'stage' has no trace; compare with trace_steps above 0"
