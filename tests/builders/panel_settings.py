"""Any setting of the panel's toggles."""

from __future__ import annotations

from hypothesis import strategies as st

from workbench.core.toggles.stock import STOCK
from workbench.core.toggles.toggle import Toggle
from workbench.viz.panel.settings.setting import CHOICES, PanelSetting

numbers = st.integers(0, 4)
settings = st.builds(
    PanelSetting,
    **{name: st.sampled_from(values) for name, values in CHOICES.items()},
    # What counts where the boundary is moved alone.
    cut=st.sampled_from(["-net/hash", "+", "+a/b +c -d"]),
    capacity=numbers,
    threads=numbers,
    thread_pool=st.booleans(),
    stale_lookups=numbers,
    inter_op_threads=numbers,
    intra_op_threads=numbers,
    batch_size=st.sampled_from([0, 64, 1024]),
    chosen=st.sets(
        st.sampled_from([*STOCK, Toggle("dim", (16, 32)), Toggle("jit", (False, True))])
    ).flatmap(
        lambda toggles: st.tuples(*(st.sampled_from(each.choices).map(each.at) for each in toggles))
    ),
)
