"""The page: a store's tables, verdicts and curves in one HTML file that needs no network."""

from twofold.report.page.contents import page_contents
from twofold.report.page.document import build_page

__all__ = ["build_page", "page_contents"]
