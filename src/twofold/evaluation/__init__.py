"""Continual evaluation, and the measures computed from its curves."""
