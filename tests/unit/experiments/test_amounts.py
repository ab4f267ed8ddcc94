"""Times and sizes as text."""

from __future__ import annotations

import math

import pytest

from workbench.errors import OptionError
from workbench.experiments.measurement.amounts import bytes_of, seconds_of


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("2min", 120), ("90s", 90), ("90 sec", 90), ("1.5m", 90), ("1h", 3600), (0.5, 0.5), ("7", 7)],
)
def test_times(given, seconds):
    assert seconds_of(given) == seconds


@pytest.mark.parametrize(
    ("given", "size"),
    [("8GB", 8e9), ("512 MiB", 512 * 2**20), ("1.5gb", 1.5e9), (2e9, 2e9), ("700", 700)],
)
def test_sizes(given, size):
    assert bytes_of(given) == size


@pytest.mark.parametrize(
    "wrong", ["soon", "", "2 minutes ago", "-3s", 0, -1.0, math.nan, math.inf, True, None, "25h"]
)
def test_what_is_no_time_is_refused(wrong):
    with pytest.raises(OptionError) as caught:
        seconds_of(wrong)
    assert str(caught.value) == (
        f"budget is {wrong!r}; expected a time such as '60s' or '2min', or seconds above 0 and at "
        "most a day"
    )


@pytest.mark.parametrize("wrong", ["much", "8 bananas", 0, -5, math.nan, math.inf, False, "0GB"])
def test_what_is_no_size_is_refused(wrong):
    with pytest.raises(OptionError) as caught:
        bytes_of(wrong)
    assert str(caught.value) == (
        f"memory is {wrong!r}; expected a size such as '8GB' or '512MB', or bytes above 0"
    )
