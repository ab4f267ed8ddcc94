"""How many steps a session runs before those that count."""

from __future__ import annotations

# After a change of session the first steps are not typical, and under the tracer they set it up.
SETTLING_STEPS = 3
# Of a session that was opened to be traced.
WARM_UP_STEPS = 20
