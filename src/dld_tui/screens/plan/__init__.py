"""The plan screen: an engine of TensorRT."""
