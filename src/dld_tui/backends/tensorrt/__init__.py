"""TensorRT: libraries, networks, builds, engines, profiling."""
