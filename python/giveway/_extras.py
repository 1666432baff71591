"""Optional packages: imported at their first use, with a message that names the command that installs them."""

from __future__ import annotations

import importlib
from types import ModuleType

from ._errors import MissingExtra

#: The extra of this package that installs each optional package.
_EXTRAS = {
    "polars": "polars",
    "pandas": "pandas",
    "pyarrow": "arrow",
    "duckdb": "duckdb",
    "distributed": "dask",
    "fsspec": "dask",
    "optuna": "tune",
    "altair": "chart",
    "matplotlib": "figure",
    "gymnasium": "gym",
    "numpy": "gym",
}


def need(name: str, purpose: str) -> ModuleType:
    """Imports a module of an optional package."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        extra = _EXTRAS[package]
        raise MissingExtra(
            f'{purpose} needs {package}, which is not installed: pip install "giveway[{extra}]"'
        ) from error
