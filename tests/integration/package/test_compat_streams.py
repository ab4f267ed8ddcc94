"""DeepRec's switches of GPU streams through `import workbench.compat.v1 as tf`."""

from __future__ import annotations

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2

from tests.builders.scripts import printed, run_compat
from workbench.compat import streams
from workbench.compat.config import ConfigProto
from workbench.errors import OptionError

LINES = """
from tensorflow.core.protobuf import rewriter_config_pb2
x = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next()
{stage}
y = tf.cast(x * 2, tf.float32)
w = tf.get_variable("w", [], initializer=tf.ones_initializer())
loss = y * w

sess_config = tf.ConfigProto({config})
sess_config.graph_options.rewrite_options.use_multi_stream = (rewriter_config_pb2.RewriterConfig.ON)
sess_config.graph_options.rewrite_options.multi_stream_opts.multi_stream_num = 2
sess_config.graph_options.optimizer_options.stage_multi_stream = True
for _ in range(2):
    with tf.train.MonitoredTrainingSession(
        config=sess_config, hooks=[tf.make_prefetch_hook()]
    ) as sess:
        print([float(sess.run(loss)) for _ in range(3)])
"""


def test_the_lines_run_without_a_gpu_with_one_warning(tmp_path):
    stage = "x = tf.staged(x, stage_subgraph_stream_id=1)"
    done = run_compat(LINES.format(stage=stage, config=""), tmp_path)
    assert done.stdout.splitlines() == ["[0.0, 2.0, 4.0]"] * 2, done.stderr
    assert done.stderr.count("use_multi_stream: this machine has no GPU") == 1


def test_several_cpus_stand_in_for_a_gpu(tmp_path):
    stage = "x = tf.staged(tf.abs(x), stage_subgraph_stream_id=1)"
    done = run_compat(LINES.format(stage=stage, config='device_count={"CPU": 2}'), tmp_path)
    assert done.stdout.splitlines() == ["[0.0, 2.0, 4.0]"] * 2, done.stderr
    assert "use_multi_stream" not in done.stderr


def config_with(number: int = 2, stages: bool = True, on: int = 1) -> ConfigProto:
    config = ConfigProto()
    options = config.graph_options
    options.rewrite_options.use_multi_stream = on
    options.rewrite_options.multi_stream_opts.multi_stream_num = number
    options.optimizer_options.stage_multi_stream = stages
    return config


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU of 16 GB that nothing has used, as TensorFlow and nvidia-smi tell of it."""
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
    monkeypatch.setattr(streams, "_is_in_use", lambda: False)
    monkeypatch.setattr(streams, "_memory_mb", lambda: 16_000.0)


def limits(config: ConfigProto) -> list[list[float]]:
    devices = config.to_stock().gpu_options.experimental.virtual_devices
    return [list(each.memory_limit_mb) for each in devices]


@pytest.mark.usefixtures("gpu")
class TestWithAGpu:
    @pytest.mark.parametrize(
        ("number", "expected"),
        [
            (2, [12_960, 1_440]),
            (3, [11_520, 1_440, 1_440]),
            (11, [7_200, *[720] * 10]),
        ],
    )
    def test_each_stream_is_a_logical_device(self, number: int, expected: list[int]) -> None:
        assert limits(config_with(number)) == [expected]

    @pytest.mark.parametrize(
        "config",
        [
            config_with(number=1),
            config_with(stages=False),
            config_with(on=rewriter_config_pb2.RewriterConfig.OFF),
        ],
        ids=["one stream", "not for stages", "off"],
    )
    def test_what_asks_for_none_makes_none(self, config: ConfigProto) -> None:
        assert limits(config) == []

    def test_a_split_by_hand_stays(self) -> None:
        config = config_with()
        config.gpu_options.experimental.virtual_devices.add(memory_limit_mb=[5_000, 4_000])
        assert limits(config) == [[5_000, 4_000]]

    def test_a_copy_asks_for_the_same(self) -> None:
        copied = ConfigProto()
        copied.CopyFrom(config_with(3))
        assert limits(copied) == limits(config_with(3))

    def test_one_in_use_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(streams, "_is_in_use", lambda: True)
        with pytest.raises(OptionError, match="before anything else runs on the GPU"):
            config_with().to_stock()


def test_a_gpu_whose_memory_nobody_tells_is_split_by_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
    monkeypatch.setattr(streams, "_is_in_use", lambda: False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(OptionError, match=r"say the parts in MB: .*memory_limit_mb=\["):
        config_with().to_stock()


@pytest.mark.parametrize("number", [0, -1, 2.5, "2", True])
def test_no_number_of_streams(number: object) -> None:
    with pytest.raises(OptionError, match="multi_stream_num"):
        ConfigProto().graph_options.rewrite_options.multi_stream_opts.multi_stream_num = number


def test_stages_alone_are_no_streams(tmp_path):
    lines = printed(
        """
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.stage_multi_stream = True
        tf.Session(config=config)
        print(config.graph_options.optimizer_options.stage_multi_stream)
        print(config.graph_options.rewrite_options.use_multi_stream)
        """,
        tmp_path,
    )
    assert lines == ["True", "False"]
