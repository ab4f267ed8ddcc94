"""Models and trainers that cannot have a smart stage are refused in words."""

from __future__ import annotations

import importlib.metadata

import keras
import pytest
import tensorflow as tf

from tests.builders.keras_models import (
    number_model,
    numeric,
)
from workbench.core.function import keras_trainer
from workbench.core.function.keras_fit import smart_stage_model
from workbench.errors import OptionError, UnsupportedError


class TestRefused:
    def test_what_is_no_model(self):
        with pytest.raises(OptionError, match=r"of type Dense; expected a keras.Model"):
            smart_stage_model(keras.layers.Dense(1))

    def test_a_model_that_makes_its_own_train_function(self):
        class Model(keras.Model):
            def make_train_function(self, force=False):
                raise NotImplementedError

        with pytest.raises(UnsupportedError, match="takes its make_train_function from 'Model'"):
            smart_stage_model(Model())

    def test_another_backend(self):
        trainer = type("JaxTrainer", (), {"make_train_function": lambda self, force: None})
        trainer.__module__ = "keras.src.backend.jax.trainer"
        with pytest.raises(UnsupportedError, match="but the backend is jax"):
            smart_stage_model(trainer())

    def test_an_eager_model(self):
        model = number_model(run_eagerly=True)
        with pytest.raises(UnsupportedError, match="run_eagerly=True, so it has no graph to cut"):
            smart_stage_model(model)
        # It is left as it was.
        model.fit(**numeric(), verbose=0)

    def test_a_model_that_is_compiled_eagerly_later(self):
        model = number_model()
        smart_stage_model(model)
        model.compile("sgd", "mse", run_eagerly=True)
        with pytest.raises(UnsupportedError, match=r"run_eagerly=True.* or remove\(\) its stage"):
            model.fit(**numeric(), verbose=0)

    def test_a_distribution_strategy(self):
        strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
        with strategy.scope():
            model = number_model()
        with pytest.raises(UnsupportedError, match="trains under OneDeviceStrategy"):
            smart_stage_model(model)

    def test_a_distribution_strategy_that_comes_later(self):
        model = number_model()
        smart_stage_model(model)
        with (
            tf.distribute.OneDeviceStrategy("/cpu:0").scope(),
            pytest.raises(UnsupportedError, match="trains under OneDeviceStrategy"),
        ):
            model.fit(**numeric(), verbose=0)

    def test_a_trainer_that_looks_different(self, monkeypatch):
        from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

        monkeypatch.setattr(
            TensorFlowTrainer, "make_train_function", lambda self, force, more: None
        )
        with pytest.raises(UnsupportedError, match=r"takes \['self', 'force', 'more'\], expected"):
            smart_stage_model(number_model())

    def test_an_unknown_version_is_said_so(self, monkeypatch, caplog):
        monkeypatch.setattr(importlib.metadata, "version", lambda name: "3.99.1")
        smart_stage_model(number_model())
        assert "Keras 3.99.1 was not tried with a smart stage (tried: 3.15)" in caplog.text

    def test_this_version_is_known(self, caplog):
        smart_stage_model(number_model())
        assert not caplog.text
        assert int(keras.__version__.split(".")[1]) in keras_trainer.KNOWN
