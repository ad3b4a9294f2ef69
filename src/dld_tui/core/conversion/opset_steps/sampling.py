"""Resize, Upsample, GridSample and RoiAlign: where samples are placed, and how they are read."""

from __future__ import annotations

import numpy as np

from dld_tui.core.conversion.opset_steps.step import (
    Array,
    OpsetStep,
    UnwritableError,
    int64_array,
    ints,
)
from dld_tui.core.model.shapes.size import number_of


def upsample_scales_up(step: OpsetStep) -> None:
    """Write two scales as those of all axes."""
    height, width = step.take("height_scale", 1.0), step.take("width_scale", 1.0)
    step.put("scales", [1.0, 1.0, height, width])
    if step.get("mode", "nearest") == "bilinear":
        step.put("mode", "linear")


def upsample_input_up(step: OpsetStep) -> None:
    """Make the scales an input."""
    scales = np.array(step.take("scales"), np.float32)
    step.put_input(1, step.constant(scales))


def upsample_input_down(step: OpsetStep) -> None:
    """Make the scales an attribute."""
    scales = step.need_array(1, "the scales")
    del step.node.input[1:]
    step.put("scales", [float(scale) for scale in scales.ravel()])


def upsample_to_resize(step: OpsetStep) -> None:
    """Rename it."""
    step.values.enlarged.add(step.output(0))
    step.node.op_type = "Resize"


def resize_to_upsample(step: OpsetStep) -> None:
    """Rename it where nothing shrinks."""
    scales = step.array(1)
    if scales is None or (scales < 1).any():
        raise UnwritableError("Resize does not exist before opset 10, and Upsample only enlarges")
    step.node.op_type = "Upsample"


def grid_sample_up(step: OpsetStep) -> None:
    """Rename the modes."""
    mode = step.get("mode", "bilinear")
    step.put("mode", {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode))


def grid_sample_down(step: OpsetStep) -> None:
    """Rename the modes; there were only images."""
    mode = step.get("mode", "linear")
    rank = step.rank(0) or step.rank(1)
    if rank is None:
        step.need_rank("GridSample before opset 20, which has only images,")
    if rank != 4:
        raise UnwritableError(f"GridSample has no input of rank {rank} before opset 20")
    step.put("mode", {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode))


def roi_align_up(step: OpsetStep) -> None:
    """Say where samples were."""
    step.put("coordinate_transformation_mode", "output_half_pixel")


def roi_align_down(step: OpsetStep) -> None:
    """Move regions by half a pixel where they are known, and at least one pixel large."""
    mode = step.take("coordinate_transformation_mode", "half_pixel")
    if mode == "output_half_pixel":
        return
    regions, scale = step.array(1), step.get("spatial_scale", 1.0)
    what = f"RoiAlign has no coordinate_transformation_mode {mode} before opset {step.since}"
    if regions is None:
        raise UnwritableError(f"{what}, and its regions, which could be moved, are not constant")
    ends = regions.reshape(-1, 4).astype(np.float64)
    if ((ends[:, 2:] - ends[:, :2]) * scale < 1).any():
        raise UnwritableError(f"{what}: regions of less than a pixel become one there")
    step.put_input(1, step.constant(ends - 0.5 / scale, step.need_dtype(1)))


def resize_up(step: OpsetStep) -> None:
    """Resize of opset 10, and Upsample, place their samples in one way only."""
    step.put("coordinate_transformation_mode", "asymmetric")
    scales = step.array(1)
    step.node.input.insert(1, step.constant(np.zeros(0, np.float32)))
    if step.get("mode", "nearest") != "nearest":
        return
    if scales is None and step.output(0) in step.values.enlarged:
        step.put("nearest_mode", "floor")
        return
    if scales is None:
        raise UnwritableError(
            "the scales of Resize must be constant: where it shrinks it rounds in another way"
        )
    grows, shrinks = scales > 1, scales < 1
    if grows.any() and shrinks.any():
        roi, source = step.input(1), step.input(0)
        smaller = step.constant(np.where(shrinks, scales, 1).astype(np.float32))
        first = step.add(
            "Resize", [source, roi, smaller], mode="nearest", nearest_mode="ceil",
            coordinate_transformation_mode="asymmetric",
        )  # fmt: skip
        step.put_input(0, first)
        step.put_input(2, step.constant(np.where(grows, scales, 1).astype(np.float32)))
    step.put("nearest_mode", "floor" if grows.any() or not shrinks.any() else "ceil")


def resize_down(step: OpsetStep) -> None:
    """Write it without sizes, for the one way to place samples that there was."""
    scales = _scales(step)
    mode, coordinates = step.get("mode", "nearest"), step.get(
        "coordinate_transformation_mode", "half_pixel"
    )  # fmt: skip
    if scales is None and step.input(2) and (mode, coordinates) == ("linear", "asymmetric"):
        _without_modes(step, step.input(2))  # as it always was, whatever the scales
        return
    if scales is None:
        raise UnwritableError(
            "the scales of Resize are not known: before opset 11 it takes no sizes, and rounds by "
            "whether it shrinks"
        )
    rounding = step.get("nearest_mode", "round_prefer_floor")
    is_whole = bool((scales >= 1).all() and (scales == np.round(scales)).all())
    if mode == "nearest":
        is_same = coordinates == "asymmetric" and (
            (rounding == "floor" and (scales >= 1).all())
            or (rounding == "ceil" and (scales <= 1).all())
        )
        is_same |= is_whole and coordinates == "half_pixel" and rounding.startswith("round_")
    else:
        is_same = mode == "linear" and (coordinates == "asymmetric" or bool((scales == 1).all()))
    if not is_same:
        raise UnwritableError(
            f"Resize has no mode {mode} with {coordinates}"
            f"{f' and {rounding}' if mode == 'nearest' else ''} before opset 11"
        )
    _without_modes(step, step.constant(scales.astype(np.float32)))


def _without_modes(step: OpsetStep, scales: str) -> None:
    for name in (
        "coordinate_transformation_mode",
        "cubic_coeff_a",
        "exclude_outside",
        "extrapolation_value",
        "nearest_mode",
    ):
        step.take(name)
    source = step.input(0)
    del step.node.input[:]
    step.node.input.extend([source, scales])


def _scales(step: OpsetStep) -> Array | None:
    scales = step.array(2)
    if scales is not None and scales.size:
        return scales.astype(np.float64)
    sizes, shape = step.array(3), step.sizes(0)
    if sizes is None or shape is None or len(shape) != sizes.size or 0 in shape:
        return None
    scales = sizes.ravel() / np.array(shape, np.float64)
    floored = np.floor(np.float32(scales) * np.array(shape, np.float32))
    return scales if (floored == sizes.ravel()).all() else None


def resize_inputs_up(step: OpsetStep) -> None:
    """Drop empty inputs that were required, and a mode that went."""
    if step.get("coordinate_transformation_mode") == "tf_half_pixel_for_nn":
        if step.get("mode", "nearest") != "nearest" or step.get("nearest_mode") != "floor":
            raise UnwritableError("Resize has no tf_half_pixel_for_nn from opset 13 on")
        step.put("coordinate_transformation_mode", "half_pixel")
        step.put("nearest_mode", "round_prefer_ceil")
    for at in (1, 2):  # what was required, and empty
        array = step.array(at)
        if array is not None and not array.size:
            step.put_input(at, "")


def resize_inputs_down(step: OpsetStep) -> None:
    """Give empty inputs that were required."""
    for at in (1, 2):
        if not step.input(at):
            step.put_input(at, step.constant(np.zeros(0, np.float32)))


def resize_axes_down(step: OpsetStep) -> None:
    """Write what some axes have for all."""
    policy = step.take("keep_aspect_ratio_policy", "stretch")
    if step.input(3) and policy != "stretch":
        _keep_ratio(step, policy)
    if not step.has("axes"):
        return
    rank = step.need_rank("Resize of some axes")
    axes = [axis % rank for axis in step.take("axes")]
    for at in (1, 2, 3):  # regions, scales, sizes
        given = step.array(at)
        if not step.input(at) or (given is not None and not given.size):
            continue
        places, full = axes, np.ones(rank, np.float32)
        if at == 1:
            places = [*axes, *(axis + rank for axis in axes)]
            full = np.array([0.0] * rank + [1.0] * rank, np.float32)
        elif at == 3:
            numbers = [number_of(size) for size in step.dims(step.input(0)) or ()]
            if any(number is None for number in numbers):
                given = None
            full = int64_array(number or 0 for number in numbers)
        dtype = step.dtype(1) if at == 1 else str(full.dtype)
        if given is not None:
            full[places] = given.ravel()
            step.put_input(at, step.constant(full, dtype))
            continue
        base = step.add("Shape", [step.input(0)], (rank,), "int64") if at == 3 else step.constant(
            full, dtype
        )  # fmt: skip
        inputs = [base, step.constant(int64_array(places)), step.input(at)]
        step.put_input(at, step.add("ScatterElements", inputs, (len(full),), dtype, axis=0))


def _keep_ratio(step: OpsetStep, policy: str) -> None:
    """Give the scale that fits the sizes."""
    sizes, dims = step.array(3), step.dims(step.input(0))
    rank = None if dims is None else len(dims)
    axes = [] if rank is None else [axis % rank for axis in step.get("axes") or range(rank)]
    given = [number_of((dims or ())[axis]) for axis in axes]
    if sizes is None or not given or any(not number for number in given):
        raise UnwritableError(
            f"Resize has no keep_aspect_ratio_policy {policy} before opset 18, and its sizes, which"
            " would say the scale, are not known"
        )
    numbers = np.array(given, np.float64)
    ratios = sizes.ravel() / numbers
    scale = ratios.min() if policy == "not_larger" else ratios.max()
    rounded = np.floor(scale * numbers + 0.5)
    scales = np.full(len(axes), scale, np.float32)
    step.put_input(3, "")
    if (np.floor(np.float32(numbers) * scales) == rounded).all():
        step.put_input(2, step.constant(scales))
    elif (scale * numbers == rounded).all():
        step.put_input(3, step.constant(int64_array(rounded)))
    else:
        raise UnwritableError(
            f"Resize has no keep_aspect_ratio_policy {policy} before opset 18, and no scale makes"
            f" its sizes: {ints(rounded)}"
        )


def resize_modes_down(step: OpsetStep) -> None:
    """Write symmetric samples as half pixels where the sizes of the output are no fractions."""
    mode = step.get("coordinate_transformation_mode", "half_pixel")
    if mode != "half_pixel_symmetric":
        return
    scales, dims = step.array(2), step.dims(step.input(0))
    if not step.input(3):
        axes = step.get("axes") or range(0 if scales is None else scales.size)
        sizes = [number_of((dims or ())[axis]) for axis in axes] if dims is not None else []
        if scales is None or not sizes or any(size is None for size in sizes):
            raise UnwritableError(
                f"Resize has no {mode} before opset {step.since}, and its scales or sizes are not"
                " known"
            )
        results = np.array(sizes, np.float64) * scales.ravel()
        if (results != np.floor(results)).any():
            raise UnwritableError(
                f"Resize has no {mode} before opset {step.since}, and the scales make a fraction"
            )
    step.put("coordinate_transformation_mode", "half_pixel")
