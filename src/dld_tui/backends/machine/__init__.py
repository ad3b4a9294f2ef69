"""What this machine has: libraries, devices, state."""
