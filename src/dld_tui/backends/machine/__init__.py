"""What this machine has and does: libraries, devices, clocks, sensors, kernels of its GPU."""
