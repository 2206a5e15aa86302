"""Runs: their configuration, their folders, and the processes that make them."""
