"""Machines that are reached over SSH: what is saved of them, and how a person is asked."""
