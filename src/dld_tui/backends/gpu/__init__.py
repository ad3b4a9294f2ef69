"""NVIDIA GPUs and Jetson boards: driver, tracing, counters, clocks."""
