"""The refitter of the fake of TensorRT. See :mod:`tests.support.fake_tensorrt`."""

from __future__ import annotations

import hashlib
from typing import Any

import onnx

from tests.support.fake_tensorrt_compute import refit_model
from tests.support.fake_tensorrt_network import log


class Refitter:
    """Puts other weights in an engine."""

    def __init__(self: Any, engine: Any, logger: Any) -> None:
        if not engine.refittable:
            log(engine, "ERROR", "Cannot refit a non-refittable engine.")
            raise TypeError("pybind11::init(): factory function returned nullptr")
        self._engine, self._logger = engine, logger
        self._new: dict[str, str] = {}
        self._tensors: list[onnx.TensorProto] = []

    def get_all_weights(self: Any) -> list[str]:
        return list(self._engine._plan["weights"])

    def get_missing_weights(self: Any) -> list[str]:
        return [
            name for name in self._engine._plan["weights"] if self._new and name not in self._new
        ]

    def refit_cuda_engine(self: Any) -> bool:
        if self.get_missing_weights():
            return bool(log(self, "ERROR", "Missing weights in the refit."))
        self._engine._plan["weights"].update(self._new)
        refit_model(self._engine._plan, self._tensors)
        return True


class OnnxParserRefitter:
    """Reads the weights of an ONNX model."""

    num_errors = property(lambda self: len(self._errors))

    def __init__(self: Any, refitter: Any, logger: Any) -> None:
        self._refitter, self._logger = refitter, logger
        self._errors: list[Any] = []

    def get_error(self: Any, index: int) -> Any:
        return self._errors[index]

    def refit_from_file(self: Any, model: str) -> bool:
        return bool(self._take(onnx.load(model)))

    def _take(self: Any, model: onnx.ModelProto) -> bool:
        known = self._refitter._engine._plan["weights"]
        found = {
            one.name: hashlib.sha256(one.SerializeToString()).hexdigest()
            for one in model.graph.initializer
        }
        for name in known:
            if name not in found:
                error = self._maker.new(
                    "ParserError",
                    code=self._maker.made["ErrorCode"].REFIT_FAILED,
                    desc=f"the model has no weights {name}",
                    node=-1,
                    name="",
                    operator="",
                )
                self._errors.append(error)
                return False
        self._refitter._new = {name: found[name] for name in known}
        self._refitter._tensors = list(model.graph.initializer)
        return True


BEHAVIOURS: dict[str, type] = {kind.__name__: kind for kind in (Refitter, OnnxParserRefitter)}
