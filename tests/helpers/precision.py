"""The mark of tests that compute in bf16."""

from __future__ import annotations

import pytest

from twofold.models.precision import bf16_works

needs_bf16 = pytest.mark.skipif(
    not bf16_works(), reason="in bf16 (a processor on which torch computes in it)"
)
