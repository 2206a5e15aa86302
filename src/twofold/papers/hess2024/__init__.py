"""Hess, Tuytelaars and van de Ven (2024): ask not only what to optimise, but also how."""
