"""What tests of the page share: three short runs, and how to read a page."""

from __future__ import annotations

import base64
import http.client
import json
import re
from typing import Any

import numpy as np

nan = np.nan


def pair(first: list[float], second: list[float]) -> list[list[float]]:
    """Two tasks of four iterations: accuracies on the first, and on the second from its start."""
    return [first, [nan] * 4 + second]


ONE = pair([50, 60, 80, 90, 70, 60, 80, 89.5], [20, 40, 60, 80])
TWO = pair([50, 60, 80, 80, 74, 76, 70, 72], [20, 40, 60, 90])
THREE = pair([50, 60, 80, 85, 72, 65, 75, 80.75], [20, 40, 60, 85])


def numbers(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), kind)


def points(curve: dict[str, str]) -> list[tuple[int, float]]:
    x, y = numbers(curve["x"], "<i4"), numbers(curve["y"], "<f4")
    return list(zip(x.tolist(), y.tolist(), strict=True))


def contents_of(page: str) -> Any:
    """The contents, as a browser would read them."""
    (text,) = re.findall(r'<script type="application/json" id="contents">(.*?)</script>', page)
    return json.loads(text)


def ask(port: int, method: str, path: str, **headers: str) -> Any:
    """The answer of a server on this machine; its `text` is the body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(
        method, path, headers={name.replace("_", "-"): headers[name] for name in headers}
    )
    answer: Any = connection.getresponse()
    answer.text = answer.read().decode()
    connection.close()
    return answer
