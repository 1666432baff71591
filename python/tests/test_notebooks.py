"""The notebooks, and their gallery in the book. The gate runs each notebook as a script."""

from __future__ import annotations

import ast

import pytest
from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "python" / "notebooks").glob("*.py"))
GALLERY = ROOT / "docs" / "book" / "notebooks.md"
IMAGES = ROOT / "docs" / "book" / "images"


def has_figure(path):
    return "    figure = " in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_gallery_has_each_notebook_with_its_picture(path):
    page = GALLERY.read_text()
    image = IMAGES / f"notebook-{path.stem.replace('_', '-')}.png"
    assert f"`{path.name}`" in page
    assert (f"](images/{image.name})" in page) == has_figure(path)
    assert not has_figure(path) or image.read_bytes().startswith(b"\x89PNG")


def test_the_pictures_are_small_and_each_belongs_to_a_notebook():
    images = sorted(IMAGES.glob("notebook-*.png"))
    assert sum(image.stat().st_size for image in images) < 600_000
    stems = [image.stem.removeprefix("notebook-").replace("-", "_") for image in images]
    assert stems == [path.stem for path in NOTEBOOKS if has_figure(path)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_begins_with_what_it_shows(path):
    tree = ast.parse(path.read_text())
    title = ast.get_docstring(tree)
    assert title
    assert title.endswith((".", "?"))
    cells = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert len(cells) >= 6
    texts = [
        node.value for node in ast.walk(cells[1]) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert any(text.lstrip().startswith("# ") for text in texts)
