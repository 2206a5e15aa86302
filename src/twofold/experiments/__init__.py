"""Runs: their configuration, their folders, and the processes that train them."""
