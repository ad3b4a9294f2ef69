"""What a machine is, what state it is in, what may disturb a measurement there; this process."""
