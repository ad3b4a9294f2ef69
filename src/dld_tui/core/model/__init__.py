"""An ONNX model in memory: its document, operators, tensors, shapes, inputs, cost and edits."""
