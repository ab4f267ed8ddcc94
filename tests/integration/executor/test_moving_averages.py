"""Averages of variables begin right under every policy, in both ways that the docs name."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.builders.executors import POLICIES, config_of

v1 = tf.compat.v1


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("resource", [True, False])
def test_averages_begin_as_their_variables(policy, resource):
    for seed in range(4):
        with tf.Graph().as_default():
            v1.set_random_seed(seed)
            weight = v1.get_variable("weight", [3], use_resource=resource)
            averages = tf.train.ExponentialMovingAverage(0.9)
            averages.apply([weight])
            average = averages.average(weight)
            others = [v for v in v1.global_variables() if v is not weight]
            runs = [v1.global_variables_initializer()]
            if not resource:
                runs = [weight.initializer, v1.variables_initializer(others)]
            with v1.Session(config=config_of(policy)) as session:
                for run in runs:
                    session.run(run)
                np.testing.assert_array_equal(*session.run([average, weight]))
