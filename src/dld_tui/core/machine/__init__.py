"""What a machine is, what state it is in, and what may disturb a measurement there."""
