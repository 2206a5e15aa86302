"""Continual evaluation, and the metrics made from its curves."""
