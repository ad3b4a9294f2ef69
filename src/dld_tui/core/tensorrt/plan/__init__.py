"""TensorRT engine plans: readers, tables, checks, mapping to ONNX nodes."""
