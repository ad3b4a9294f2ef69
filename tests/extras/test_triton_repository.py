"""The configuration is read back as Triton reads it: protobuf text of its ModelConfig."""

from __future__ import annotations

import numpy as np
import pytest

from dld_tui.core.errors import InputError, UsageError
from dld_tui.extras.triton.repository import ServedModel, ServedTensor, model_config
from tests.support.triton import parse, tensors

TYPES = {"float32": "FP32", "float16": "FP16", "int64": "INT64", "uint8": "UINT8", "bf16": "BF16"}


@pytest.mark.parametrize("seed", range(30))
def test_drawn_interfaces(seed: int) -> None:
    """Dimensions with the batch before them are those that the model has."""
    random = np.random.default_rng(seed)

    def draw(name: str) -> ServedTensor:
        firsts: list[int | str | None] = ["N", "N", "N", None, "M", 3]
        dims = [firsts[random.integers(6)]]
        more: list[int | str | None] = [5, "S", 1]
        dims += [more[random.integers(3)] for _ in range(random.integers(0, 3))]
        most = int(random.integers(1, 9)) if random.random() < 0.3 else None
        return ServedTensor(name, str(random.choice(list(TYPES))), tuple(dims), most)

    sides = [[draw(f'{side}\n"é{at}') for at in range(random.integers(1, 4))] for side in "xy"]
    made = model_config("m", ServedModel("onnxruntime", tuple(sides[0]), tuple(sides[1])))
    config = parse(made.text)
    every = [*sides[0], *sides[1]]
    firsts = {one.dims[0] for one in every if one.dims}
    batched = 3 not in firsts and len(firsts - {None}) <= 1
    limits = [one.most for one in sides[0] if one.most is not None]
    assert config.max_batch_size == (min(limits, default=4) if batched else 0)
    assert bool(made.remarks) != batched
    for entry, one in zip([*config.input, *config.output], every, strict=True):
        own = list(entry.reshape.shape) if entry.HasField("reshape") else list(entry.dims)
        whole = ([-1] if batched else []) + own
        assert whole == [size if isinstance(size, int) else -1 for size in one.dims or ()]
        assert tensors([entry])[0][:2] == (one.name, f"TYPE_{TYPES[one.dtype or '']}")


X = ServedTensor("x", "float32", ("N", 2))


@pytest.mark.parametrize(
    ("tensor", "options", "said"),
    [
        (ServedTensor("x", "float32", ()), {}, "'x' is a scalar"),
        (ServedTensor("x", "complex64", ("N",)), {}, "no type for 'x': complex64"),
        (ServedTensor("x", "float32", ("N", 0)), {}, "a dimension of 0"),
        (ServedTensor("x", "float32", None), {}, "the shape of 'x' is not known"),
        (ServedTensor("x", None, None), {}, "the type of 'x' is not known"),
        (ServedTensor("x\udcff", "float32", ("N",)), {}, "not UTF-8"),
        (ServedTensor("x", "float32", (3, 2)), {"max_batch": 2}, "of 'x' is not free"),
        (ServedTensor("x", "int32", (None,), is_shape=True), {"max_batch": 2}, "'x' is a shape"),
        (ServedTensor("x", "float32", (None,), 3), {"max_batch": 4}, "at most 3"),
        (X, {"name": "../b"}, "is not a valid model name"),
        (X, {"name": ".."}, "is not a valid model name"),
        (X, {"name": ""}, "is not a valid model name"),
    ],
)  # fmt: skip
def test_refused(tensor: ServedTensor, options: dict[str, object], said: str) -> None:
    served = ServedModel("onnxruntime", (tensor,), (X,))
    arguments: dict[str, object] = {"name": "m", **options}
    with pytest.raises((InputError, UsageError), match=said):
        model_config(served=served, **arguments)  # type: ignore[arg-type]
