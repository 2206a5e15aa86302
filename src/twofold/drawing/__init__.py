"""Pictures of plain arrays: styles, curves and panels. It knows no runs."""
