"""Task: what one process of a cluster is, from TF_CONFIG as TensorFlow's own runtime reads it."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

from workbench.errors import OptionError

PS, WORKER = "ps", "worker"
_EXAMPLE = (
    '{"cluster": {"ps": ["host:port"], "worker": ["host:port", "host:port"]}, '
    '"task": {"type": "worker", "index": 0}}'
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """One process of a cluster.

    Attributes:
      job: PS or WORKER.
      index: its number within its job; worker 0 is the chief.
      cluster: addresses "host:port" of all tasks, by job.
    """

    job: str
    index: int
    cluster: Mapping[str, tuple[str, ...]]

    @property
    def name(self) -> str:
        """As it is called in messages: "worker 0"."""
        return f"{self.job} {self.index}"

    @property
    def address(self) -> str:
        """Its own "host:port"."""
        return self.cluster[self.job][self.index]

    @property
    def addresses(self) -> tuple[str, ...]:
        """Of all tasks."""
        return tuple(each for addresses in self.cluster.values() for each in addresses)

    @property
    def is_chief(self) -> bool:
        """Whether it initializes variables and writes checkpoints."""
        return self.job == WORKER and self.index == 0

    @property
    def shard(self) -> tuple[int, int]:
        """Which part of the data is its own: the index of how many; all of it for a ps."""
        return (self.index, len(self.cluster[WORKER])) if self.job == WORKER else (0, 1)

    def to_config(self) -> str:
        """What TF_CONFIG is in its process."""
        cluster = {job: list(addresses) for job, addresses in self.cluster.items()}
        return json.dumps({"cluster": cluster, "task": {"type": self.job, "index": self.index}})


def task_from_environment(environment: Mapping[str, str] | None = None) -> Task:
    """The task that this process is.

    Args:
      environment: where TF_CONFIG stands; None takes the process's own.

    Raises:
      OptionError: TF_CONFIG is missing or says something else than a task of a cluster.
    """
    text = (os.environ if environment is None else environment).get("TF_CONFIG", "")
    if not text:
        raise OptionError(
            f"TF_CONFIG is not set, which says what task this process is; expected {_EXAMPLE}. "
            "`workbench cluster-demo` starts a cluster of local processes"
        )
    try:
        found = json.loads(text)
        cluster, task = found["cluster"], found["task"]
        job, index = task["type"], task["index"]
    except (ValueError, KeyError, TypeError) as error:
        raise _wrong(f"{type(error).__name__}: {error}", text) from error
    _check(cluster, job, index, text)
    return Task(job=job, index=index, cluster={name: tuple(each) for name, each in cluster.items()})


def _check(cluster: Any, job: Any, index: Any, text: str) -> None:
    if not isinstance(cluster, dict) or set(cluster) != {PS, WORKER}:
        jobs = sorted(cluster) if isinstance(cluster, dict) else cluster
        raise _wrong(f"its jobs are {jobs}; expected ps and worker", text)
    for name, addresses in cluster.items():
        if not isinstance(addresses, list) or not addresses or not all(map(_is_address, addresses)):
            raise _wrong(f"job {name!r} has {addresses!r}; expected a list of 'host:port'", text)
    if job not in cluster:
        raise _wrong(f"the task's type is {job!r}; expected ps or worker", text)
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(cluster[job]):
        raise _wrong(f"the task's index is {index!r}; job {job!r} has {len(cluster[job])}", text)


def _is_address(value: Any) -> bool:
    host, _, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    return bool(host) and port.isdecimal()


def _wrong(what: str, text: str) -> OptionError:
    return OptionError(
        f"TF_CONFIG is no task of a cluster: {what}. It is {text!r}; e.g. {_EXAMPLE}"
    )
