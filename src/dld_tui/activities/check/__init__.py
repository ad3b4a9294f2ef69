"""Checks that need a child process: those of onnx and of the runtimes, and of damaged files."""
