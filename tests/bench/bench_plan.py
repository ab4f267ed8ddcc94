"""Prints what the graph pass costs that applies a plan: 10,000 nodes, half of them moved.

python -m tests.bench.bench_plan
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

_SCRIPT = """
    import tensorflow as tf
    from tests.builders import stage_plans as plans
    from workbench import _native

    _native.library()
    with tf.Graph().as_default():
        config = plans.config_of(plans.build_chains(5_000))
        with tf.compat.v1.Session(config=config) as session:
            session.run(tf.constant(1))
"""


def main() -> None:
    """Runs it in a process whose log has the pass's own time, and prints that line."""
    logged = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "stage_plan_pass=1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_SCRIPT)],
        env={**os.environ, **logged},
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = re.findall(r"Applied 1 planned stages to 1\d{4} nodes.*", done.stderr)
    print(line)


if __name__ == "__main__":
    main()
