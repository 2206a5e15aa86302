"""Views of runs for people: tables, verdicts, departures, figures and the page."""
