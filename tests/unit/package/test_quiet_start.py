"""quiet_start: which lines it keeps back."""

from __future__ import annotations

import os

import pytest

import workbench as wb

STARTS = (
    b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
    b"I0000 00:00:1795372656.858819   17816 cudart_stub.cc:31] Could not find cuda drivers.\n"
)


def test_lines_of_the_start_are_kept_back_and_others_shown(capfd):
    with wb.quiet_start():
        os.write(2, STARTS + b"E0000 00:00:1795372656.9 178 x.cc:3] bad\n" + b"mine\n")
        assert capfd.readouterr().err == ""
    assert capfd.readouterr().err == "E0000 00:00:1795372656.9 178 x.cc:3] bad\nmine\n"
    os.write(2, STARTS)
    assert capfd.readouterr().err == STARTS.decode()


def test_an_error_passes_with_what_was_said_before_it(capfd):
    with pytest.raises(ImportError, match="broken"), wb.quiet_start():
        os.write(2, STARTS + b"cannot open libcuda\n")
        raise ImportError("broken")
    assert capfd.readouterr().err == "cannot open libcuda\n"
