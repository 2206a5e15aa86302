"""Comparisons: groups of runs over seeds, statistics, verdicts, departures and references."""
