"""Pictures of plain arrays: styles, curves and panels. It knows no runs."""

from twofold.extras import need

need("figures", "a figure")  # all modules here import matplotlib
