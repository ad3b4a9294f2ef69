"""What names of kernels say of how they compute; the names are those of real engines."""

from __future__ import annotations

import pytest

from dld_tui.core.machine.kernel_names import on_tensor_cores, roof_of
from dld_tui.core.machine.peaks import FP16_SUMS, Peaks

PEAKS = Peaks("a GPU", {"fp32": 10.0, "tf32": 80.0, "fp16": 160.0, FP16_SUMS: 320.0}, 1.0)


@pytest.mark.parametrize(
    ("kernel", "precision", "name", "flops"),
    [
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc", "fp32", "tf32", 80.0),
        ("maxwell_scudnn_128x64_relu_small_nn_v0", "fp32", "fp32", 10.0),
        ("", "fp32", "tf32", 80.0),  # the fastest that it may be
        ("ampere_h16816cudnn_128x128_ldg8_relu_exp_interior_nhwc_tn_v1", "fp16", FP16_SUMS, 320.0),
        ("ampere_s16816cudnn_128x128_ldg8_relu_exp_interior_nhwc_tn_v1", "fp16", "fp16", 160.0),
        ("maxwell_scudnn_winograd_128x128_ldg1_ldg4_tile148n_nt_v1", "fp32", "fp32 Winograd", 40.0),
        ("sm80_xmma_sparse_conv_f16f16_f16f32_f32_nhwckrsc_nhwc", "fp16", "fp16 sparse", 320.0),
        ("anything", "int4", None, None),  # a type without a peak
    ],
)
def test_a_kernel_stands_against_the_peak_of_how_it_computes(
    kernel: str, precision: str, name: str | None, flops: float | None
) -> None:
    roof = roof_of(kernel, precision, PEAKS)
    assert (roof and roof.name, roof and roof.flops) == (name, flops)


def test_only_some_names_tell_of_tensor_cores() -> None:
    names = ("ampere_h16816gemm_128x64", "volta_sgemm_32x32", "void xmma_kernel")
    assert [on_tensor_cores(name) for name in names] == [True, False, None]
