"""The fake of TensorRT itself: what the real bindings do not have, it does not have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engines import model_of
from tests.support.fake_tensorrt import fake_tensorrt


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
