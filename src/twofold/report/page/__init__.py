"""The page: a store's tables, verdicts and curves in one HTML file that needs no network."""

from twofold.extras import need

need("report", "the page")

from twofold.report.page.contents import page_contents  # noqa: E402
from twofold.report.page.document import build_page  # noqa: E402

__all__ = ["build_page", "page_contents"]
