"""The one line that an exception of a child process becomes; the texts are as TensorFlow writes."""

from __future__ import annotations

import pytest

from workbench.errors import OptionError
from workbench.experiments.worker.wire.failure import failure_of

GRAPH = """Graph execution error:

Detected at node GatherV2 defined at (most recent call last):
  File "/home/me/train.py", line 37, in <module>

  File "/home/me/train.py", line 11, in step
    return tf.gather(tf.range(3), x)

  File "/venv/site-packages/keras/layers.py", line 5, in call

indices = 7 is not in [0, 3)
\t [[{{node GatherV2}}]] [Op:__inference_step_11]"""
SESSION = """Graph execution error:

Detected at node 'floordiv' defined at (most recent call last):
    File "/home/me/train.py", line 5, in <module>
Node: 'floordiv'
Integer division by zero
\t [[{{node floordiv}}]]"""
SEVERAL = """Graph execution error:

Detected at node mul defined at (most recent call last):
  File "/home/me/train.py", line 3, in step

2 root error(s) found.
  (0) INVALID_ARGUMENT:  indices = 7 is not in [0, 3)
\t [[{{node GatherV2}}]]
  (1) CANCELLED:  other
0 successful operations."""
AUTOGRAPH = """in user code:

    File "/home/me/train.py", line 16, in step  *
        raise ValueError("no such column")
    File "/venv/site-packages/keras/layers.py", line 9, in call  **
        x.y

    ValueError: no such column
"""
GENERATOR = """{{function_node __wrapped__IteratorGetNext_output_types_1}} KeyError: 'row 2'
Traceback (most recent call last):

  File "/venv/site-packages/tensorflow/python/ops/script_ops.py", line 269, in __call__
    ret = func(*args)
          ^^^^^^^^^^^

  File "/home/me/data.py", line 24, in rows
    raise KeyError("row 2")

KeyError: 'row 2'


\t [[{{node PyFunc}}]] [Op:IteratorGetNext] name: """
KERAS = """Exception encountered when calling Ranker.call().

\x1b[1m{{function_node x}} Dimensions must be equal\x1b[0m

Arguments received by Ranker.call():
  • x=1"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GRAPH, "`/home/me/train.py`, line 11: ValueError: indices = 7 is not in [0, 3)"),
        (SESSION, "`/home/me/train.py`, line 5: ValueError: Integer division by zero"),
        (SEVERAL, "`/home/me/train.py`, line 3: ValueError: indices = 7 is not in [0, 3)"),
        (AUTOGRAPH, "`/home/me/train.py`, line 16: ValueError: no such column"),
        (GENERATOR, "`/home/me/data.py`, line 24: KeyError: 'row 2'"),
        (
            KERAS,
            "ValueError: Dimensions must be equal (exception encountered when calling "
            "Ranker.call())",
        ),
        ("no such column\nand more", "ValueError: no such column"),
        ("", "ValueError"),
        ("Graph execution error:", "ValueError"),
        ('File "/tmp/ipykernel_7/1.py", line 3, in make', "notebook cell, line 3: ValueError"),
    ],
)
def test_a_text_becomes_the_users_place_and_what_happened(text, said):
    assert failure_of(ValueError(text)).message == said


def test_where_the_text_names_no_place_the_traceback_does():
    try:
        raise ValueError("no such column")
    except ValueError as error:
        found = failure_of(error)
    assert found.message.endswith(": ValueError: no such column")
    assert "test_failure.py`, line " in found.message
    assert found.kind == ""
    assert "Traceback" in found.details


def test_errors_of_ours_keep_their_words():
    found = failure_of(OptionError("capacity is 0; expected more\nFile"))
    assert (found.kind, found.message) == ("OptionError", "capacity is 0; expected more")
