"""The rules of fusion, a kind each, in the order in which they are asked."""

from workbench.core.fusion.lookups.rule import RULE as LOOKUPS
from workbench.core.fusion.rules.batch_norm import RULE as BATCH_NORMS
from workbench.core.fusion.rules.dense_layer import RULE as DENSE_LAYERS
from workbench.core.fusion.rules.hashed_columns import RULE as HASHED_COLUMNS
from workbench.core.fusion.rules.id_columns import RULE as ID_COLUMNS
from workbench.core.fusion.rules.interaction import RULE as INTERACTIONS
from workbench.core.fusion.rules.kernel_swap import DECODERS, UPDATES

# What the first ones fuse, the last ones leave alone.
RULES = (
    LOOKUPS,
    BATCH_NORMS,
    INTERACTIONS,
    DENSE_LAYERS,
    HASHED_COLUMNS,
    DECODERS,
    UPDATES,
    ID_COLUMNS,
)
