"""Twenty programs that are each slow for one known reason, and what their first finding says.

`make bench-findings`; python -m tests.bench.bench_findings NAME … runs some of them.
"""

from __future__ import annotations

import sys

import workbench as wb
from tests.bench.planted_faults import PLANTED

_STEPS, _WARM_UP = 15, 15


def main(names: list[str]) -> int:
    """Prints a line for each program; 1 where a first finding is another one."""
    wrong = 0
    for name in names or PLANTED:
        planted = PLANTED[name]
        program = wb.Program(name=name, build=planted.build)
        trace = wb.trace(program, planted.on, steps=_STEPS, warm_up_steps=_WARM_UP, progress=False)
        found = list(wb.findings(trace))
        first = found[0] if found else None
        named = first is not None and first.key in planted.keys
        right = named and (not planted.mends or first.toggle in planted.mends)  # type: ignore[union-attr]
        wrong += not right
        others = ", ".join(each.key for each in found[1:4])
        said = f"{first.key} ({first.toggle})" if first else "nothing"
        print(
            f"{'right' if right else 'WRONG'}  {planted.fault}: {said}; then {others}", flush=True
        )
    print(f"{len(names or PLANTED) - wrong} of {len(names or PLANTED)} are named first")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
