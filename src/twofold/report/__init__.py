"""What people look at: tables, verdicts, departures, figures and the page."""
