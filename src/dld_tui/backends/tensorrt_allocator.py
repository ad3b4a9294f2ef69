"""Memory for an output whose size only the run decides, and the shape that it then has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tensorrt as trt
else:
    from dld_tui.backends.tensorrt_library import trt


def allocator_of(
    address: int, size: int, told: Callable[[tuple[int, ...]], None]
) -> trt.IOutputAllocator:
    """Return the library's allocator that gives memory which is there already.

    Args:
        address: Of the memory.
        size: Its bytes: as many as the library says that it needs at most.
        told: Gets the shape, in every run.
    """

    class Allocator(trt.IOutputAllocator):
        """Gives the memory; no address when more is asked for, which ends the run."""

        def __init__(self) -> None:
            trt.IOutputAllocator.__init__(self)

        def reallocate_output(
            self, tensor_name: str, memory: int, wanted: int, alignment: int
        ) -> int:
            """Return the memory; before TensorRT 10."""
            return address if wanted <= size else 0

        def reallocate_output_async(
            self, tensor_name: str, memory: int, wanted: int, alignment: int, stream: int
        ) -> int:
            """Return the memory; since TensorRT 10."""
            return address if wanted <= size else 0

        def notify_shape(self, tensor_name: str, shape: Any) -> None:
            """Pass the shape on."""
            told(tuple(int(dim) for dim in shape))

    return Allocator()
