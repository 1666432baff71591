"""Exports the notebooks.

    python python/export_notebooks.py pictures             the pictures of the book's gallery
    python python/export_notebooks.py jupyter FOLDER       notebooks for Jupyter, executed, with their outputs

The picture of a notebook in `notebooks/` is its variable `figure`, if it has one.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NOTEBOOKS = sorted((HERE / "notebooks").glob("*.py"))
IMAGES = HERE.parent / "docs" / "book" / "images"


def pictures() -> None:
    """Draws the picture of each notebook."""
    for path in NOTEBOOKS:
        if "    figure = " not in path.read_text(encoding="utf-8"):
            continue
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _, variables = module.app.run()
        file = IMAGES / f"notebook-{path.stem.replace('_', '-')}.png"
        # Without the version of matplotlib, so that the file changes with the picture only.
        variables["figure"].savefig(file, dpi=110, metadata={"Software": None})
        print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB")


def jupyter(folder: Path) -> None:
    """Writes each notebook for Jupyter, and executes it."""
    import nbformat
    from nbclient import NotebookClient

    folder.mkdir(parents=True, exist_ok=True)
    for path in NOTEBOOKS:
        file = folder / f"{path.stem}.ipynb"
        words = [sys.executable, "-m", "marimo", "export", "ipynb", str(path), "--output", str(file), "--force"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        notebook = nbformat.read(file, as_version=4)
        # In the folder of the notebooks, from which they find the files of the repository.
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}).execute()
        nbformat.write(notebook, file)
        outputs = sum(len(cell.get("outputs", [])) for cell in notebook.cells)
        print(f"{file.name}: {len(notebook.cells)} cells, {outputs} outputs")


def main() -> None:
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description="Exports the notebooks.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("pictures", help="draw the pictures of the book's gallery")
    commands.add_parser("jupyter", help="write and execute notebooks for Jupyter").add_argument("folder", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "pictures":
        pictures()
    else:
        jupyter(arguments.folder)


if __name__ == "__main__":
    main()
