"""TF_CONFIG → Task: which process of a cluster this one is, and what it says of a wrong one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench.errors import OptionError
from workbench.experiments.cluster.task import Task, task_from_environment

CLUSTER = {"ps": ["a:1"], "worker": ["b:1", "b:2"]}


def task_of(cluster: Any = None, **task: Any) -> Task:
    given = {"type": "worker", "index": 1, **task}
    text = json.dumps({"cluster": CLUSTER if cluster is None else cluster, "task": given})
    return task_from_environment({"TF_CONFIG": text})


def test_a_worker_knows_its_part_of_the_data():
    task = task_of()
    assert (task.name, task.is_chief, task.shard) == ("worker 1", False, (1, 2))
    assert task_of(index=0).is_chief
    ps = task_of(type="ps", index=0)
    assert (ps.name, ps.is_chief, ps.shard) == ("ps 0", False, (0, 1))


def test_what_it_writes_can_be_read_again():
    task = task_of()
    assert task_from_environment({"TF_CONFIG": task.to_config()}) == task


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "TF_CONFIG is not set, which says what task this process is; expected"),
        ("{", "TF_CONFIG is no task of a cluster: JSONDecodeError"),
        ("[]", "TF_CONFIG is no task of a cluster: TypeError"),
        ('{"cluster": {}}', "KeyError: 'task'"),
    ],
)
def test_what_is_no_task_is_told_what_one_is(text: str, said: str):
    with pytest.raises(OptionError) as caught:
        task_from_environment({"TF_CONFIG": text})
    assert said in str(caught.value) and '"worker": ["host:port", "host:port"]' in str(caught.value)


@pytest.mark.parametrize(
    ("cluster", "task", "said"),
    [
        ({"worker": ["b:1"]}, {}, "its jobs are ['worker']; expected ps and worker"),
        ({**CLUSTER, "chief": ["c:1"]}, {}, "its jobs are ['chief', 'ps', 'worker']"),
        ({"ps": [], "worker": ["b:1"]}, {}, "job 'ps' has []; expected a list of 'host:port'"),
        ({"ps": ["a"], "worker": ["b:1"]}, {}, "job 'ps' has ['a']; expected a list of"),
        (None, {"type": "chief"}, "the task's type is 'chief'; expected ps or worker"),
        (None, {"index": 2}, "the task's index is 2; job 'worker' has 2"),
        (None, {"index": True}, "the task's index is True; job 'worker' has 2"),
        (None, {"index": "0"}, "the task's index is '0'; job 'worker' has 2"),
    ],
)
def test_what_does_not_fit_is_named(cluster: Any, task: dict[str, Any], said: str):
    with pytest.raises(OptionError) as caught:
        task_of(cluster, **task)
    assert said in str(caught.value)
