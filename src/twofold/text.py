"""Numbers and names as text, in the same form in every table, sentence and figure."""

from __future__ import annotations

from collections.abc import Iterable

MINUS, EMPTY = "−", "–"
LONGEST = 2000  # letters of a text that shows as it is


def inert(text: str) -> str:
    """Return a text with everything that a terminal would act on written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def is_shown(text: str) -> bool:
    """Tell whether a text shows as it is: no line ends, no terminal escapes, and not too long."""
    return len(text) <= LONGEST and text.isprintable()


def value_text(mean: float, error: float | None, decimals: int = 1) -> str:
    """Return `93.6 ± 0.1`, or the mean alone if it has no error."""
    text = signed(mean, decimals).removeprefix("+")
    return text + (f" ± {error:.{decimals}f}" if error is not None else "")


def mean_text(values: Iterable[float | None], empty: str = EMPTY) -> str:
    """Return the mean and standard error of the values that exist, or `empty` without any."""
    from twofold.statistics import mean_and_error  # numpy, which --help does not need

    known = [value for value in values if value is not None]
    return value_text(*mean_and_error(known)) if known else empty


def signed(number: float, decimals: int = 1) -> str:
    """Return `+0.3` or `−2.0`; a number that rounds to zero has no sign."""
    text = f"{abs(number):.{decimals}f}"
    if not float(text):
        return text
    return ("+" if number > 0 else MINUS) + text


def interval_text(interval: tuple[float, float] | None, decimals: int = 1) -> str:
    """Return `+0.3 to +2.0`; a dash if there is none.

    It has up to two decimals more if an end would otherwise be rounded to zero, which is what an
    interval is compared with.
    """
    if not interval:
        return EMPTY
    hidden = (any(end and not round(end, n) for end in interval) for n in (decimals, decimals + 1))
    decimals += sum(hidden)
    return " to ".join(signed(end, decimals) for end in interval)


def p_text(p: float | None) -> str:
    if p is None:
        return EMPTY
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def stated(number: float) -> str:
    """Return a learning rate or a batch size; a dash for 0, of a loop that did not state it."""
    return f"{number:g}" if number else EMPTY


def counted(number: float, noun: str) -> str:
    """Return `1 run`, `2 runs` or `0.5 points`."""
    return f"{number:.12g} {noun}" + ("s" if number != 1 else "")


def spoken(seconds: float) -> str:
    """Return `40 s`, `1.5 min`, `12 min`, `3 h 20 min`, `2 d 4 h` or `30 d`, as estimates are."""
    minutes = round(seconds / 60)
    hours, days = minutes // 60, minutes // 1440
    if round(seconds) < 60:
        return f"{max(1, round(seconds))} s"
    if minutes < 10:
        return f"{round(seconds / 30) / 2:g} min"
    if hours < 1:
        return f"{minutes} min"
    if days < 1:
        return f"{hours} h {minutes % 60} min"
    return f"{days} d {hours % 24} h" if days < 10 else f"{days} d"
