"""The ops of fused lookups are handed anything: an error or a result, never a crash."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow.python.eager import context

from workbench import _native

# More of them under AddressSanitizer: make native-fuzz.
FUZZED = settings(max_examples=int(os.environ.get("WORKBENCH_FUZZ_EXAMPLES", "150")), deadline=None)


class TestDamagedInputs:
    @FUZZED
    @given(data=st.data())
    def test_before_the_lookup(self, data: Any) -> None:
        size = st.integers(-1, 4)
        number = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 5)

        def vector(length: int) -> np.ndarray:
            return np.array([data.draw(number) for _ in range(length)], np.int64)

        count, rank = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 3))
        arguments = {
            "ids": vector(count),
            "indices": vector(count * rank).reshape(count, rank),
            "dense_shape": np.array([data.draw(size) for _ in range(rank)], np.int64),
            "weights": np.ones(data.draw(st.integers(0, 4)), np.float32),
            "use_weights": data.draw(st.booleans()),
            "prune_invalid_id": data.draw(st.booleans()),
            "prune_invalid_weight": data.draw(st.booleans()),
            "fill_empty_row": data.draw(st.booleans()),
            "default_id": data.draw(number),
        }
        parts = data.draw(st.integers(1, 3))
        library = _native.library()
        with context.eager_mode(), contextlib.suppress(tf.errors.InvalidArgumentError):
            found = library.workbench_pre_look_up(
                **arguments,
                table_rows=vector(data.draw(st.integers(0, 3))),
                num_partitions=parts,
                partition_strategy=data.draw(st.sampled_from(("div", "mod", "mod_key"))),
            )
            assert found.row_splits[-1] == sum(len(part) for part in found.partitioned_values)

    @FUZZED
    @given(data=st.data())
    def test_after_the_lookup(self, data: Any) -> None:
        def integers(dtype: Any, *shape: int) -> np.ndarray:
            size = int(np.prod(shape))
            return np.array([data.draw(st.integers(-1, 4)) for _ in range(size)], dtype).reshape(
                shape
            )

        length = st.integers(0, 4)
        parts, dim = data.draw(st.integers(1, 3)), data.draw(length)
        sizes = [data.draw(length) for _ in range(parts)]
        shards = [np.ones([size, dim], np.float32) for size in sizes]
        values = [np.zeros(size, np.int64) for size in sizes]
        splits = np.sort(integers(np.int32, data.draw(length)))
        places = {
            "permutation": integers(np.int32, data.draw(length), 2),
            "row_splits": splits,
            "weights": np.ones(data.draw(length), np.float32),
            "combiner": data.draw(st.sampled_from(("sum", "mean", "sqrtn"))),
            "use_weights": data.draw(st.booleans()),
            "max_norm": data.draw(st.sampled_from((-1.0, 0.5))),
        }
        index = integers(np.int32, data.draw(length))
        rows = max(0, len(splits) - 1)
        gradient = np.ones([data.draw(st.sampled_from((rows, 2))), dim], np.float32)
        shape = np.array([rows, data.draw(length)], np.int64)
        library = _native.library()
        refused = contextlib.suppress(tf.errors.InvalidArgumentError)
        with context.eager_mode():
            with refused:
                library.workbench_post_look_up(shards, values, shape, **places)
            with refused:
                library.workbench_post_look_up_v2(shards, values, shape, index, **places)
            with refused:
                library.workbench_post_look_up_grad(gradient, values, shards=shards, **places)
            with refused:
                library.workbench_post_look_up_v2_grad(
                    gradient, values, index, shards=shards, **places
                )
            local = {"combiner": places["combiner"], "use_index": places["use_weights"]}
            rows_of = integers(np.int64, data.draw(length))
            with refused:
                library.workbench_local_look_up(shards[0], shape, rows_of, index, splits, **local)
            handle = tf.Variable(shards[0]).handle
            with refused:
                library.workbench_resource_rows_apply_adagrad(
                    handle, handle, 0.1, gradient, rows_of
                )
            with refused:
                library.workbench_local_look_up_grad(gradient, rows_of, index, splits, **local)
