"""A stand-in for the native library's C functions, with learned costs written by hand."""

from __future__ import annotations

import ctypes

# Two executors: of the step, which has learned (b is the critical branch of a → b, c → d), and of
# the initialization, which has not.
LEARNT = (
    "executor\tlearned\tsteps\tnode\top\tdevice\tcount\taverage_ns\tcritical_path_ns\tslack_ns\tbatch\t"
    "order\n"
    "1\t1\t100\ta\tConst\t/cpu:0\t100\t10\t1120\t0\t0\tby cost\n"
    "1\t1\t100\tb\tMatMul\t/cpu:0\t100\t1000\t1110\t0\t0\tby cost\n"
    '1\t1\t100\tNA/"c\tNeg\t/cpu:0\t100\t200\t310\t800\t1\tby cost\n'
    "1\t1\t100\td\tAdd\t/cpu:0\t50\t110\t110\t0\t-1\tby cost\n"
    "2\t0\t1\tinit\tNoOp\t/cpu:0\t1\t7\t0\t0\t-1\t\n"
)


class FakeCalls:
    """Has what `_native.calls()` has, and remembers what it was told.

    Attributes:
      learned: the text that `workbench_learned_costs` hands out.
      given: the lines of each `workbench_preload_costs`.
      freed: texts that were freed, by address; `lent`: those that were handed out.
      relearned: calls of `workbench_relearn`.
      asked: arguments of each `workbench_cost_model_type`.
    """

    def __init__(self, learned: str = LEARNT) -> None:
        self.learned = learned
        self.given: list[str] = []
        self.lent: list[int] = []
        self.freed: list[int] = []
        self.relearned = 0
        self.asked: list[tuple[int, ...]] = []
        self._kept: list[object] = []

    def workbench_learned_costs(self) -> int:
        text = ctypes.create_string_buffer(self.learned.encode())
        self._kept.append(text)
        self.lent.append(ctypes.addressof(text))
        return self.lent[-1]

    def workbench_free(self, pointer: int) -> None:
        self.freed.append(pointer)

    def workbench_preload_costs(self, lines: bytes) -> None:
        self.given.append(lines.decode())

    def workbench_relearn(self) -> None:
        self.relearned += 1

    def workbench_cost_model_type(self, *numbers: int) -> bytes:
        self.asked.append(numbers)
        named = zip(("start", "stop", "batch_ns", "batch_ops"), numbers, strict=True)
        return f"WORKBENCH_COST_MODEL({','.join(f'{k}={v}' for k, v in named)})".encode()
