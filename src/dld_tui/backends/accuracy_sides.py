"""The two sides of a comparison: what a model, or an engine, is run by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import onnx

from dld_tui.backends.onnxruntime import version
from dld_tui.backends.onnxruntime_options import SessionSettings
from dld_tui.backends.onnxruntime_tensors import TensorRunner
from dld_tui.core.document.document import Document
from dld_tui.core.events import Event
from dld_tui.core.inputs.dtypes import AnyArray
from dld_tui.core.inputs.shapes import InputSpec
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from collections.abc import Collection

Feeds: TypeAlias = "Sequence[Mapping[str, Any]]"
_HALVES = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


class Runner(Protocol):
    """Runs one side."""

    @property
    def is_engine(self) -> bool:
        """Whether TensorRT runs it, which casts inputs to what the engine takes."""

    @property
    def builds(self) -> bool:
        """Whether each group of tensors takes a build."""

    @property
    def refused(self) -> Mapping[str, str]:
        """Tensors that could not be had after all, and why."""

    @property
    def types(self) -> Mapping[str, str]:
        """Types of the inputs of an engine that was built, by ONNX's names."""

    @property
    def remarks(self) -> Iterable[str]:
        """What was done otherwise than asked. Fit for a terminal."""

    @property
    def inputs(self) -> list[InputSpec]:
        """What is fed."""

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs. Foreign text."""

    def not_given(self, names: Collection[str]) -> dict[str, str]:
        """Return the tensors that it cannot tell, with the reason of each."""

    def prepare(self, names: Sequence[str], feeds: Feeds) -> Iterator[Event]:
        """Do what takes long before :meth:`each` of the same arguments."""

    def each(self, names: Sequence[str], feeds: Feeds) -> Iterator[dict[str, AnyArray | None]]:
        """Yield tensors by name, for one set of inputs after the other."""


class Side(Protocol):
    """What is compared."""

    @property
    def document(self) -> Document | None:
        """The model; None for an engine that is built already."""

    @property
    def is_loose(self) -> bool:
        """Whether it may compute with fewer digits than float32 has."""

    def runner(self, tensors: bool) -> AbstractContextManager[Any]:
        """Return what runs it.

        Args:
            tensors: Whether inner tensors will be asked for.
        """

    def told(self) -> dict[str, JSON]:
        """Return how it is run, for the result."""


@dataclass
class ModelSide:
    """A model that ONNX Runtime runs."""

    document: Document
    settings: SessionSettings
    folder: Path | None = None
    """Where its weights are, for a document without a path."""

    @property
    def is_loose(self) -> bool:
        """Whether the model is in 16 bits."""
        return has_halves(self.document)

    @property
    def provider(self) -> str:
        """The execution provider."""
        return self.settings.providers[0]

    def runner(self, tensors: bool) -> SessionRunner:
        """Return what runs it."""
        return SessionRunner(self.document, self.settings, folder=self.folder)

    def told(self) -> dict[str, JSON]:
        """Return how it is run."""
        level = self.settings.optimization_level
        return {
            "library": f"ONNX Runtime {version()}",
            "provider": self.provider,
            "optimization": level,
            "how": f"ONNX Runtime {version()}, {self.provider}, optimization {level}",
        }


class SessionRunner(TensorRunner):
    """A model's tensors by ONNX Runtime, which needs no build and gives all of them."""

    is_engine = builds = False
    refused: Mapping[str, str] = MappingProxyType({})
    types: Mapping[str, str] = MappingProxyType({})
    remarks: Iterable[str] = ()

    def not_given(self, names: Collection[str]) -> dict[str, str]:
        """Return nothing: any tensor of the main graph can be had."""
        known = {name for node in self._model.graph.node for name in node.output}
        known |= {*self.outputs}
        reason = "the other model has no tensor of this name"
        return {name: reason for name in names if name not in known}

    def prepare(self, names: Sequence[str], feeds: Feeds) -> Iterator[Event]:
        """Do nothing."""
        return iter(())


def has_halves(document: Document) -> bool:
    """Return whether a model computes in float16 or bfloat16."""
    halves = ("float16", "bfloat16")
    for scope in document.scopes():
        if any(tensor.dtype in halves for tensor in scope.initializers):
            return True
        for node in scope.nodes:
            if node.op_type == "Cast" and any(
                attribute.name == "to" and attribute.value in _HALVES
                for attribute in node.attributes()
            ):
                return True
    return False
