"""What names of kernels say of how they compute; the names are those of real engines."""

from __future__ import annotations

import pytest

from dld_tui.core.machine.kernel_names import on_tensor_cores, roof_of
from dld_tui.core.machine.peaks import FP16_SUMS, Peaks

FLOPS = {"fp32": 10.0, "tf32": 80.0, "fp16": 160.0, "int8": 640.0, FP16_SUMS: 320.0}
PEAKS = Peaks("a GPU", FLOPS, 1.0)


@pytest.mark.parametrize(
    ("kernel", "precision", "roof"),
    [
        ("sm80_xmma_fprop_sparse_conv_interleaved_i8i8_i8i32_f32_sptensor16x8x64", "int8",
         ("int8 sparse", 1280.0)),
        ("sm80_xmma_sparse_conv_f16f16_f16f32_f32_nhwckrsc_nhwc", "fp16", ("fp16 sparse", 320.0)),
        ("ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "fp32",
         ("fp32 Winograd", 40.0)),
    ],
)  # fmt: skip
def test_kernels_with_fewer_operations_than_counted_have_a_higher_roof(
    kernel: str, precision: str, roof: tuple[str, float]
) -> None:
    assert roof_of(kernel, precision, PEAKS) == roof


def test_only_some_names_tell_of_tensor_cores() -> None:
    names = ("ampere_h16816gemm_128x64", "volta_sgemm_32x32", "void xmma_kernel")
    assert [on_tensor_cores(name) for name in names] == [True, False, None]
