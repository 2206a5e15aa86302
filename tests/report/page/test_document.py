"""The page's document."""

from __future__ import annotations

import base64
import hashlib
import re

from helpers.benchmarks import domain_benchmark
from helpers.page import ONE, contents_of
from helpers.runs import curve_run
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold
from twofold.report.page import build_page
from twofold.report.page.document import as_json, document


def test_the_document_is_one_file_that_connects_to_nothing():
    page = build_page([curve_run("er", ONE)], "runs")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    own = page.replace(scripts[0], "").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|\bsrc=|@import|url\(", own)
    assert contents_of(page)["store"] == "runs"


def test_equal_runs_give_equal_pages():
    first, second = (build_page([curve_run("er", ONE)], "runs") for _ in range(2))
    assert first == second


@settings(max_examples=20)
@given(st.text())
def test_no_name_ends_the_element_it_stands_in(name):
    page = document(as_json({"store": name, "html": "</script><script>alert(1)</script>"}))
    assert contents_of(page)["store"] == name
    assert page.count("<script>") == 2


def test_a_page_can_be_made_of_runs_from_python():
    run = twofold.run(domain_benchmark(), "er", batch_size=10)
    (cell,) = contents_of(build_page([run]))["groups"]
    assert cell["settings"]["benchmark"] == "domain-toy"
    assert cell["command"] is None  # made of tensors
    assert cell["ends"] == [12, 24, 36]
