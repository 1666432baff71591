"""What a candidate in Python may use: no file, no clock, no network, and nothing of the program that judges it.

The source is checked before it runs, and it runs with few built-in functions. That keeps a program that searches from
finding a way out by chance, and gives it a message that helps. It does not stop an attacker, who reaches all of Python
through an annotation that a function of ``typing`` evaluates. So the program runs in a process that has nothing to
reach: see ``_candidate``.
"""

from __future__ import annotations

import ast
import builtins
import importlib
from typing import Any

#: Modules that a candidate may import whole: all that they contain is harmless.
_WHOLE = ("bisect", "heapq", "itertools", "math")
#: Modules from which it may import their public names.
_NAMES = ("collections", "dataclasses", "enum", "functools", "random", "typing")

#: All modules of which a candidate may import something.
MODULES = _WHOLE + _NAMES

#: Built-in functions that reach beyond the candidate.
_REFUSED = frozenset(
    [
        *("breakpoint", "compile", "copyright", "credits", "delattr", "dir", "eval", "exec", "exit", "getattr"),
        *("globals", "help", "input", "license", "locals", "memoryview", "open", "print", "quit", "setattr"),
        *("type", "vars"),
    ]
)
#: Attributes that reach the frames of callers, or read attributes by a text.
_ATTRIBUTES = ("ag_", "cr_", "f_", "gi_", "tb_")
_FORMATS = ("format", "format_map")


class PolicyError(Exception):
    """A candidate uses what it may not."""


def checked(source: str, file: str) -> dict[str, Any]:
    """The names that a candidate defines, after its source was checked and run.

    Args:
        source: Its text.
        file: The name of its file, for messages.

    Raises:
        PolicyError: It uses what it may not. The message names the line.
        SyntaxError: It is not Python.
    """
    tree = ast.parse(source, file)
    _Check().visit(tree)
    allowed = {
        name: value
        for name, value in vars(builtins).items()
        if name not in _REFUSED and (not name.startswith("_") or name == "__build_class__")
    }
    allowed["__import__"] = _imported
    names: dict[str, Any] = {"__builtins__": allowed, "__name__": "candidate"}
    exec(compile(tree, file, "exec"), names)
    return names


def _imported(name: str, _globals: Any = None, _locals: Any = None, names: Any = (), level: int = 0) -> Any:
    """``__import__`` of a candidate. Its import statements were checked before."""
    if level or name not in _WHOLE + _NAMES + ("__future__",):
        raise PolicyError(f"it imports {name}")
    del names
    return importlib.import_module(name)


class _Check(ast.NodeVisitor):
    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name not in _WHOLE:
                _refuse(node, f"imports {alias.name}")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module == "__future__":
            return
        if node.level or node.module not in _WHOLE + _NAMES:
            _refuse(node, f"imports {node.module or 'a relative module'}")
        public = getattr(importlib.import_module(str(node.module)), "__all__", None)
        for alias in node.names:
            hidden = alias.name.startswith("_") or alias.name == "*"
            if hidden or (public is not None and alias.name not in public):
                _refuse(node, f"imports {node.module}.{alias.name}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        self._attribute(node, node.attr, own)
        self.generic_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            self._attribute(node, name, False)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in _REFUSED:
            _refuse(node, f"uses {node.id}")
        if node.id.startswith("__"):
            _refuse(node, f"uses {node.id}")

    def _attribute(self, node: ast.AST, name: str, own: bool) -> None:
        hidden = name.startswith("__") or (name.startswith("_") and not own)
        if hidden or name.startswith(_ATTRIBUTES) or name in _FORMATS:
            _refuse(node, f"uses the attribute {name}")


def _refuse(node: ast.AST, what: str) -> None:
    modules = ", ".join(sorted(_WHOLE + _NAMES))
    line = getattr(node, "lineno", 0)
    raise PolicyError(f"line {line} {what}: a candidate may import public names of {modules}, and nothing else")
