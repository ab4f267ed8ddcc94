"""DeepRec's executor policies: `tf.ExecutorPolicy`, and the environment variables that it reads."""

from __future__ import annotations

import enum
import logging
import os
from typing import Any

from workbench.core import options
from workbench.core.executor.policy import executor_type
from workbench.errors import OptionError

_LOG = logging.getLogger("workbench")
_warned: set[str] = set()
_START, _STOP = "START_NODE_STATS_STEP", "STOP_NODE_STATS_STEP"
_TRUTHS = {"0": False, "false": False, "1": True, "true": True}


class ExecutorPolicy(enum.IntEnum):
    """The values of `ConfigProto.executor_policy`, with DeepRec's names."""

    USE_NORMAL_EXECUTOR = 0
    USE_INLINE_EXECUTOR = 1
    USE_COST_MODEL_EXECUTOR = 2


# In the order in which DeepRec looks at its environment variables of the same names.
_SWITCHES = (ExecutorPolicy.USE_COST_MODEL_EXECUTOR, ExecutorPolicy.USE_INLINE_EXECUTOR)


def policy_of(value: Any) -> ExecutorPolicy:
    """What a script sets `executor_policy` to, by value or by name.

    Raises:
      OptionError: neither is a policy.
    """
    try:
        return ExecutorPolicy[value] if isinstance(value, str) else ExecutorPolicy(value)
    except (KeyError, ValueError) as error:
        names = ", ".join(f"tf.ExecutorPolicy.{policy.name}" for policy in ExecutorPolicy)
        raise OptionError(
            f"ConfigProto.executor_policy is {value!r}; expected one of {names}"
        ) from error


def policy_of_environment() -> ExecutorPolicy | None:
    """The policy that DeepRec's environment variables switch on; None if they do not.

    Raises:
      OptionError: one of them is no bool.
    """
    return next((policy for policy in _SWITCHES if _switched_on(policy.name)), None)


def set_executor_type(config: Any, policy: ExecutorPolicy | None) -> None:
    """Puts a policy into a stock ConfigProto; None takes what the environment says, if anything.

    Raises:
      OptionError: the config names another executor type, or an environment variable of the cost
        model is no integer.
    """
    named = config.experimental.executor_type
    if policy is None:
        # A script's own word counts more than the environment's.
        policy = policy_of_environment() if not named else None
    if policy is None:
        return
    wanted = _executor_type_of(policy)
    if wanted and named and named != wanted:
        raise OptionError(
            f"ConfigProto.executor_policy is {policy.name}, which is the executor {wanted!r}, but "
            f"ConfigProto.experimental.executor_type is {_shown(named)}; set one of the two"
        )
    if wanted:
        config.experimental.executor_type = wanted


def _shown(name: str) -> str:
    """The name in quotes, cut where it is longer than any executor's."""
    return repr(name) if len(name) <= 200 else f"{name[:60]!r}… of {len(name)} characters"


def _executor_type_of(policy: ExecutorPolicy) -> str:
    """The executor type that a session's config names; "" is TensorFlow's own executor."""
    if policy is ExecutorPolicy.USE_NORMAL_EXECUTOR:
        return ""
    if policy is ExecutorPolicy.USE_INLINE_EXECUTOR:
        return executor_type(options.ExecutorPolicy.INLINE, options.CostModelOptions())
    usual = options.CostModelOptions()
    start, stop = _steps(_START, usual.start_step), _steps(_STOP, usual.stop_step)
    if not options.CostModelOptions.learns(start, stop):
        _warn_inactive(start, stop)
        return ""
    learning = options.CostModelOptions(start_step=start, stop_step=stop)
    return executor_type(options.ExecutorPolicy.COST_MODEL, learning)


def _switched_on(name: str) -> bool:
    text = os.environ.get(name, "0")
    if text.lower() not in _TRUTHS:
        raise OptionError(
            f"the environment variable {name} is {text!r}; expected true or false, 1 or 0"
        )
    return _TRUTHS[text.lower()]


def _steps(name: str, otherwise: int) -> int:
    text = os.environ.get(name, str(otherwise))
    try:
        return int(text)
    except ValueError as error:
        raise OptionError(
            f"the environment variable {name} is {text!r}; expected the number of a step, such as "
            f"{otherwise}"
        ) from error


def _warn_inactive(start: int, stop: int) -> None:
    if "inactive" not in _warned:
        _warned.add("inactive")
        _LOG.warning(
            "USE_COST_MODEL_EXECUTOR stays inactive, and steps are scheduled as usual: %s is %d "
            "and %s is %d, but costs are learned only if 0 < START < STOP (DeepRec's document says "
            "it the other way round); set for example %s=100 and %s=200",
            _START,
            start,
            _STOP,
            stop,
            _START,
            _STOP,
        )
