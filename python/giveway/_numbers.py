"""Numbers and truth values that a caller gives: those of Python, and of numpy and similar packages."""

from __future__ import annotations

import operator
from typing import Any


def whole_number(name: str, value: Any, least: int = 0, most: int = 2**32 - 1, what: str = "a whole number") -> int:
    """The argument `name` as a whole number.

    Raises:
        TypeError: It is not a whole number.
        ValueError: It is not between `least` and `most`.
    """
    if is_truth(value) or isinstance(value, (str, bytes)) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {what}, not {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        # An array has `__index__`, too.
        raise TypeError(f"{name} is {what}, not {value!r}") from None
    if number < least and most == 2**32 - 1:
        raise ValueError(f"{name} is {what}: give at least {least}, not {number}")
    if not least <= number <= most:
        raise ValueError(f"{name}: {number} is not between {least} and {most}")
    return number


def is_truth(value: Any) -> bool:
    """True for True and False, and for those of numpy."""
    return isinstance(value, bool) or (type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"))


def plain(value: Any) -> Any:
    """A number or an array of numpy as a number or a list of Python; anything else as it is."""
    # A number with a type of numpy may also be one of Python, with another text.
    return value.tolist() if hasattr(value, "tolist") else value
