"""A stage plan that is malformed is refused with an error that names the place."""

from __future__ import annotations

import dataclasses

import pytest
from tensorflow.core.framework import attr_value_pb2, function_pb2, graph_pb2, tensor_shape_pb2

from tests.builders.stage_plans import (
    config_of,
    copy_set,
    error_of,
    function,
    numbers,
    plan_stage,
    with_nodes,
)


def shape_of(*sizes: int) -> attr_value_pb2.AttrValue:
    dims = [tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in sizes]
    return attr_value_pb2.AttrValue(shape=tensor_shape_pb2.TensorShapeProto(dim=dims))


class TestMalformedPlans:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"format": None}, "optimizer 'WorkbenchStagePlan': parameter 'format' is missing"),
            ({"format": "1"}, "parameter 'format' is a string; expected an integer"),
            ({"format": 1}, "has format 1, this library reads format 3; plan again; a plan"),
            ({"stages": None}, "optimizer 'WorkbenchStagePlan': parameter 'stages' is missing"),
            ({"stages": ["s"]}, "'stages' is a list of strings; expected a list of functions"),
        ],
    )
    def test_of_the_plan(self, graph, parameters, message):
        numbers()
        assert message in error_of(config_of(plan_stage(graph, ["batch"], ["batch"]), **parameters))

    @pytest.mark.parametrize(
        "key", ["moved", "moved_ops", "carried", "take", "copies", "nodes", "device", "trail"]
    )
    def test_a_missing_parameter_of_a_stage(self, graph, key):
        numbers()
        stage = plan_stage(graph, ["batch"], ["batch"]).without(key)
        assert f"stage plan, stage 'auto': parameter '{key}' is missing" in error_of(
            config_of(stage)
        )

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"moved": 3}, "'moved' is an integer; expected a list of strings"),
            ({"moved": "batch"}, "'moved' is a string; expected a list of strings"),
            ({"moved": [function("batch", {})]}, "'moved' is a list of functions; expected a list"),
            ({"moved": [], "moved_ops": []}, "'moved' is empty; expected the source first"),
            ({"moved_ops": ["A", "B"]}, "'moved' has 1 names, 'moved_ops' 2; expected as many"),
            ({"carried": ""}, "'carried' is a string; expected a list of strings"),
            ({"take": ["a"]}, "'take' is a list of strings; expected a string"),
            ({"device": []}, "'device' is an empty list; expected a string"),
            ({"device": "somewhere"}, "'device' is 'somewhere'; expected a device's name such as"),
            ({"nodes": 1}, "'nodes' is an integer; expected a string"),
            ({"nodes": b"\xff\xff"}, "'nodes' (2 bytes) is no serialized GraphDef"),
            ({"copies": ["x"]}, "'copies' is a list of strings; expected a list of functions"),
            (
                {
                    "nodes": graph_pb2.GraphDef(
                        library=function_pb2.FunctionDefLibrary()
                    ).SerializeToString()
                },
                "parameter 'nodes' has functions; the nodes of a plan call none",
            ),
            ({"copies": [copy_set("")]}, "stage 'auto', copy '': the prefix is empty"),
            ({"copies": [copy_set("_c")]}, "copy '_c': the prefix cannot begin the name of a node"),
            ({"copies": [copy_set("c")] * 2}, "copy 'c' is there twice"),
            (
                {"copies": [copy_set("c"), copy_set("d")]},
                "the stage has 1 puts and 2 copy sets; expected a put at least, and a put for each",
            ),
            ({"moved": ["batch"] * 2, "moved_ops": ["A"] * 2}, "'batch' is moved twice"),
            ({"carried": ["batch"] * 2}, "'batch' is carried twice"),
            ({"carried": ["batch", "gone"]}, "carried node 'gone' is not moved"),
            ({"carried": []}, "source 'batch' is not carried, so a step would consume a batch"),
            ({"take": "gone"}, "take 'gone' is not among the stage's own nodes"),
            ({"take": "batch"}, "take 'batch' is not among the stage's own nodes"),
            (
                {"take": "auto/put"},
                "take 'auto/put' is a WorkbenchBufferPut; expected a WorkbenchBufferTake",
            ),
            ({"nodes": b""}, "the stage has 0 puts and 1 copy sets; expected a put at least"),
            (
                {"copies": [function("c", {"from": []})]},
                "stage 'auto', copy 'c': parameter 'to' is missing",
            ),
            (
                {"copies": [function("c", {"from": ["batch:0"], "to": []})]},
                "copy 'c': 'from' has 1 tensors, 'to' has 0; expected as many",
            ),
            (
                {"copies": [function("c", {"from": 1, "to": []})]},
                "copy 'c': parameter 'from' is an integer; expected a list of strings",
            ),
        ],
    )
    def test_of_a_stage(self, graph, parameters, message):
        numbers()
        stage = plan_stage(graph, ["batch"], ["batch"]).but(**parameters)
        found = error_of(config_of(stage))
        assert message in found
        assert "stage plan, stage 'auto'" in found
        assert "the Workbench of the same version" in found

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            (
                {"name": "auto/put", "op": "WorkbenchBufferPut"},
                "own node 'auto/put' is there twice",
            ),
            ({"name": "batch", "op": "WorkbenchBufferPut"}, "own node 'batch' is moved too"),
            ({"name": "", "op": "Placeholder"}, "own node '': no node can have that name"),
            ({"name": "a:0", "op": "Placeholder"}, "own node 'a:0': no node can have that name"),
            (
                {"name": "n", "op": "Split"},
                "own node 'n' is a Split; expected an op of a buffer or a Placeholder",
            ),
            (
                {"name": "n", "op": "Placeholder", "device": "/nowhere"},
                "own node 'n' asks for device '/nowhere'; expected a device's name such as",
            ),
            (
                {"name": "n", "op": "Placeholder", "attr": {"shape": shape_of(-7)}},
                "own node 'n': attribute 'shape' has a shape that no tensor has",
            ),
            (
                {"name": "n", "op": "Placeholder", "attr": {"shape": shape_of(1 << 40, 1 << 40)}},
                "own node 'n': attribute 'shape' has a shape that no tensor has",
            ),
        ],
    )
    def test_of_an_own_node(self, graph, fields, message):
        numbers()
        stage = plan_stage(graph, ["batch"], ["batch"])
        found = error_of(config_of(with_nodes(stage, lambda nodes: nodes.add(**fields))))
        assert f"stage plan, stage 'auto': {message}" in found

    def test_stages_without_a_name_of_their_own(self, graph):
        numbers()
        stage = plan_stage(graph, ["batch"], ["batch"])
        assert "stage plan, stage 'auto': another stage has this name too" in error_of(
            config_of(stage, stage)
        )
        unnamed = dataclasses.replace(stage, name="")
        assert "stage plan, stage '': the stage has no name" in error_of(config_of(unnamed))

    def test_an_own_node_of_two_stages(self, graph):
        numbers()
        stage = plan_stage(graph, ["batch"], ["batch"])
        second = dataclasses.replace(stage, name="second")
        assert "stage plan, stage 'second': own node 'auto/" in error_of(config_of(stage, second))

    def test_two_plans(self, graph):
        numbers()
        config = config_of(plan_stage(graph, ["batch"], ["batch"]))
        config.MergeFrom(config)
        assert "more than one custom optimizer named 'WorkbenchStagePlan'" in error_of(config)

    def test_a_session_that_places_pruned_graphs(self, graph):
        numbers()
        config = config_of(plan_stage(graph, ["batch"], ["batch"]))
        config.graph_options.place_pruned_graph = True
        assert "unset place_pruned_graph" in error_of(config)
