"""Bars, heat and charts as text."""
