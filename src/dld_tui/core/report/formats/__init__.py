"""Files of other programs as reports, and reports as theirs: ONNX Runtime, Chromium, trtexec."""
