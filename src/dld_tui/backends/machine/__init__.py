"""This machine: its libraries, devices, clocks, sensors and the kernels of its GPU."""
