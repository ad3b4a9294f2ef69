"""The checker of the onnx package on a file, run by :mod:`.process`."""

from __future__ import annotations

import sys

COMPLAINS = 3
"""The exit status if the model is not valid; the second argument then holds the message."""


def main() -> None:
    """Check the model of the first argument; write a complaint to the file of the second one."""
    import onnx

    model, report = sys.argv[1:3]
    try:
        onnx.checker.check_model(model, full_check=True)
    # The seam: C++ errors of several classes without a common base.
    except Exception as error:  # noqa: BLE001
        with open(report, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(str(error))
        sys.exit(COMPLAINS)
