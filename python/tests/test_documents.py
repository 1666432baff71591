"""The Python lines of the documents run as they are written."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import matplotlib
import pytest
from conftest import ROOT

matplotlib.use("agg")

#: Documents whose blocks follow each other in one program.
DOCUMENTS = [
    "README.md",
    "python/README.md",
    "docs/book/python.md",
    "docs/book/sweeps.md",
    "docs/book/evaluate.md",
    pytest.param("docs/book/judge.md", marks=pytest.mark.long),
    pytest.param("docs/book/users/researcher.md", marks=pytest.mark.long),
]


def blocks(document: str) -> list[tuple[int, str]]:
    """The blocks of Python in a document, each with its first line."""
    text = (ROOT / document).read_text(encoding="utf-8")
    found = re.finditer(r"^( *)```python\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
    return [(text[: block.start(2)].count("\n") + 1, textwrap.dedent(block.group(2))) for block in found]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_lines_of_a_document_run(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Names of files in the documents are relative to the repository, and what they write does not go there.
    for name in ("scenarios", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    every = blocks(document)
    assert every, "the document has a block"
    if any("distributed" in block for _, block in every):
        pytest.importorskip("distributed", reason="a document with a cluster is part of the long form of the gate")
    for line, block in every:
        # Empty lines in front, so that a traceback has the line of the document.
        exec(compile("\n" * (line - 1) + block, document, "exec"), names)
    assert capsys.readouterr().out
