"""Sessions whose denormal numbers are zero, beside others in the same process.

``session.set_denormal_as_zero`` changes how threads compute. ONNX Runtime sets it for the threads
that a session makes, and these take over what the calling thread has; for the calling thread, which
computes, too, it sets what the first session of the process asks for, and what later ones ask for
is ignored (``InferenceSession::ConstructorCommon``; seen in the outputs of 1.31.1). So each session
is made and run in the mode that it asks for, as if it were the first one of its process.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import platform
import sys
from collections.abc import Generator, Mapping
from typing import Any

ENTRY = "session.set_denormal_as_zero"
_FLUSH_TO_ZERO, _DENORMALS_ARE_ZERO = 0x8000, 0x0040
"""Bits of MXCSR (Intel 64 and IA-32 Architectures Software Developer's Manual, 10.2.3)."""
_MXCSR = 7
"""Its place in ``fenv_t`` of Linux on x86-64, which are 8 numbers of 32 bits in glibc and musl."""


@contextlib.contextmanager
def denormals_of(config: Mapping[str, str]) -> Generator[None]:
    """Let the calling thread compute as a session asks for it, while the context lasts.

    Elsewhere than on Linux on x86-64 this does nothing; on aarch64, ONNX Runtime ignores the entry.

    Args:
        config: Configuration entries of the session.
    """
    library = _library() if config.get(ENTRY, "").strip() == "1" else None
    if library is None:
        yield
        return
    before = (ctypes.c_uint32 * 8)()
    library.fegetenv(before)
    inside = (ctypes.c_uint32 * 8)(*before)
    inside[_MXCSR] |= _FLUSH_TO_ZERO | _DENORMALS_ARE_ZERO
    library.fesetenv(inside)
    try:
        yield
    finally:
        library.fesetenv(before)


@functools.cache
def _library() -> Any:
    """Return the C library, or None where ``fenv_t`` is another one."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    library = ctypes.CDLL("libm.so.6") if platform.libc_ver()[0] == "glibc" else ctypes.CDLL(None)
    return library if hasattr(library, "fesetenv") else None
