"""ONNX Runtime: sessions, values of inner tensors, profiling."""
