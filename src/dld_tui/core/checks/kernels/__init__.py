"""What single kernels of ONNX Runtime refuse."""
