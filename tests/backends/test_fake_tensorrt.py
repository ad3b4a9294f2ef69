"""The fake of TensorRT itself: what the real bindings do not have, it does not have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engines import FIXED, FREE, built, model_of
from tests.support.fake_tensorrt import STRONGLY_TYPED, fake_tensorrt, install


@pytest.fixture
def trt() -> Any:
    return fake_tensorrt()


def test_unknown_names_and_arguments_raise(trt: Any) -> None:
    builder = trt.Builder(trt.Logger())
    config = builder.create_builder_config()

    with pytest.raises(AttributeError):
        _ = builder.build_cuda_engine
    with pytest.raises(AttributeError, match="no attribute 'max_workspace_size'"):
        config.max_workspace_size = 1
    with pytest.raises(TypeError, match="incompatible function arguments"):
        config.set_flag("FP16")
    with pytest.raises(TypeError, match="incompatible function arguments"):
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE)
    with pytest.raises(TypeError, match="No constructor defined"):
        trt.INetworkDefinition()
    with pytest.raises(AttributeError):
        builder.num_DLA_cores = 2
    with pytest.raises(TypeError, match="is a int"):
        config.max_aux_streams = "two"


def test_a_class_of_the_program_must_fit_and_be_initialised(trt: Any) -> None:
    with pytest.raises(TypeError):

        class Wrong(trt.IProfiler):  # type: ignore[misc]
            def report_layer_time(self, name: str) -> None: ...

    class Lazy(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

    with pytest.raises(TypeError, match="incompatible function arguments"):
        trt.Builder(Lazy())


def test_it_parses_real_models_and_records_wishes(trt: Any) -> None:
    logger = trt.Logger()
    network = trt.Builder(logger).create_network(0)
    assert trt.OnnxParser(network, logger).parse(model_of(FREE).SerializeToString())

    layers = [network.get_layer(index) for index in range(network.num_layers)]
    assert [(layer.name, layer.type.name) for layer in layers] == [
        ("kernel", "CONSTANT"),
        ("first", "CONVOLUTION"),
        ("last", "ACTIVATION"),
    ]
    layers[1].precision = trt.float16
    layers[1].set_output_type(0, trt.float16)
    assert layers[1].precision_is_set
    assert layers[1].get_output_type(0) == trt.DataType.HALF
    assert tuple(network.get_input(0).shape) == (-1, 3, 4, 4)


def test_what_it_cannot_parse_is_an_error_of_a_node(trt: Any) -> None:
    trt.fake.unsupported = {"Relu"}
    logger = trt.Logger()
    parser = trt.OnnxParser(trt.Builder(logger).create_network(0), logger)

    assert not parser.parse(model_of(FIXED).SerializeToString())
    assert (parser.num_errors, parser.get_error(0).node_name()) == (1, "last")
    assert not parser.parse(b"no model")


def test_constraints_count_only_where_flags_say_so(trt: Any) -> None:
    def precision(*flags: str) -> str:
        logger = trt.Logger()
        builder = trt.Builder(logger)
        network = builder.create_network(0)
        trt.OnnxParser(network, logger).parse(model_of().SerializeToString())
        network.get_layer(1).precision = trt.float16
        config = builder.create_builder_config()
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
        for flag in flags:
            config.set_flag(trt.BuilderFlag[flag])
        plan = builder.build_serialized_network(network, config)
        engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
        text = engine.create_engine_inspector().get_layer_information(
            1, trt.LayerInformationFormat.JSON
        )
        return "Half" if '"Half"' in text else "Float"

    assert precision("FP16", "OBEY_PRECISION_CONSTRAINTS") == "Half"
    assert precision("TF32") == "Float"


def test_the_strong_library_lacks_what_11_removed() -> None:
    strong = fake_tensorrt(STRONGLY_TYPED)

    assert not hasattr(strong.BuilderFlag, "FP16")
    assert not hasattr(strong.ILayer, "precision")
    assert not hasattr(strong, "IInt8EntropyCalibrator2")
    assert built(strong)[24:28] == bytes([11, 4, 0, 106])


def test_it_is_what_import_finds(trt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, trt)

    import tensorrt

    assert tensorrt.__version__ == "10.13.0.35"
