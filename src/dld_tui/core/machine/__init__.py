"""The machine: its hardware and state, what may disturb a measurement, and this process."""
