"""Machines that are reached over SSH."""
