"""Training on several machines: synchronous steps, fewer messages, checks and merged traces."""

from workbench.core.analysis.cluster_report import ClusterReport, cluster_report
from workbench.core.cluster.merge import merge_traces
from workbench.core.session.pack_transfers import pack_function_transfers, pack_transfers
from workbench.core.session.server_library import check_servers
from workbench.experiments.cluster.synchronous import synchronous

__all__ = [
    "ClusterReport",
    "check_servers",
    "cluster_report",
    "merge_traces",
    "pack_function_transfers",
    "pack_transfers",
    "synchronous",
]
