"""DSSM, DIN and DIEN take the formats they read, name what else they are given, and load little."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workbench.errors import OptionError
from workbench.models.data.criteo import CRITEO
from workbench.models.data.table_format import CheckedTable
from workbench.models.data.taobao import DSSM_TABLE, SEQUENCE_NEGATIVE_TABLE, SEQUENCE_TABLE
from workbench.models.zoo.options import DienOptions, DinOptions, DssmOptions
from workbench.models.zoo.programs import dien_program, din_program, dssm_program


def checked(layout) -> CheckedTable:
    return CheckedTable(path=Path("log"), rows=10, more=False, layout=layout)


@pytest.mark.parametrize(
    ("options", "layout"),
    [
        (DssmOptions, DSSM_TABLE),
        (DinOptions, SEQUENCE_TABLE),
        (DinOptions, SEQUENCE_NEGATIVE_TABLE),
        (DienOptions, SEQUENCE_NEGATIVE_TABLE),
        (DienOptions, None),
    ],
)
def test_a_model_takes_its_format_and_more_columns_behind_it(options, layout):
    assert options(data=checked(layout)).data.layout is layout


@pytest.mark.parametrize(
    ("options", "layout", "message"),
    [
        (
            DssmOptions,
            CRITEO,
            "log was checked as rows of label, I1..I13, C1..C26; DSSM reads clk, buy, user_id to "
            "tag_brand_list, adgroup_id to pid",
        ),
        (
            DienOptions,
            SEQUENCE_TABLE,
            "log was checked as rows of CLICKED, UID, ITEM, CATEGORY, HISTORY_ITEM, "
            "HISTORY_CATEGORY; DIEN reads CLICKED, UID, ITEM, CATEGORY, HISTORY_ITEM, "
            "HISTORY_CATEGORY, NOCLK_HISTORY_ITEM, NOCLK_HISTORY_CATEGORY",
        ),
        (DinOptions, DSSM_TABLE, "adgroup_id to pid; DIN reads CLICKED, UID, ITEM, CATEGORY"),
    ],
)
def test_another_format_is_named(options, layout, message):
    with pytest.raises(OptionError) as caught:
        options(data=checked(layout))
    assert message in str(caught.value)


def test_what_every_model_refuses_is_refused():
    with pytest.raises(OptionError, match="batch_size is 0; expected at least 1"):
        DienOptions(data=checked(None), batch_size=0)


@pytest.mark.parametrize(
    ("options", "program", "batch_size"),
    [
        (DssmOptions, dssm_program, 4096),
        (DinOptions, din_program, 512),
        (DienOptions, dien_program, 512),
    ],
)
def test_a_program_has_all_parts_and_says_its_settings(options, program, batch_size):
    made = program(options(data=checked(None)))
    assert made.build_epoch and made.build_input and made.build_compute
    said = made.settings
    assert (said["data"], said["rows"], said["batch_size"]) == ("log", 10, batch_size)
    assert (said["learning_rate"], said["table_learning_rate"]) == (0.001, 0.1)


def test_options_and_programs_load_no_tensorflow():
    code = "import sys, workbench.models.zoo.programs; print('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
