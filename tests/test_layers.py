"""The rules of the architecture that import-linter cannot see, read off the source itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "otel_loopguard"
EXAMPLES = ROOT / "examples"

IMPORTABLE = {
    *sys.stdlib_module_names,
    "otel_loopguard",
    "opentelemetry",
    "typing_extensions",
    "wrapt",
}
ALSO_IMPORTABLE = {
    "cli": {"msgspec", "rich", "yaml"},
    "breaking": {"requests", "urllib3"},
}

# The tables of rows, one file a framework; the other files beside them serve several rows.
FRAMEWORKS = {"anthropic", "langchain", "langgraph", "openai"}

# Where an exception of any kind ends: each of these logs it, or hands it to the application.
BOUNDARIES = {
    "breaking/escalation.py escalate",
    "breaking/escalation.py in_thread.work",
    "breaking/guarded.py GuardedLoop._stepped",
    "breaking/guarded.py GuardedLoop._stepped_async",
    "breaking/guarded.py GuardedLoop._called",
    "breaking/guarded.py GuardedLoop._awaited",
    "runtime.py guarded.decorate.inside",
    "instrumentation/api.py _scoped.begin",
    "instrumentation/tools.py ToolCall.finish",
    "instrumentation/actions.py failure_text",
    "instrumentation/table.py Patches._on_import",
    "instrumentation/drive.py iterate",
    "instrumentation/drive.py async_generator.generate",
}
BROAD = {"Exception", "BaseException"}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


SOURCES = {name_of(path): parsed(path) for path in sorted(PACKAGE.rglob("*.py"))}


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def inside(node: ast.AST, *, on_import: bool = False) -> Iterator[ast.AST]:
    """Every node below; `on_import` leaves out functions and what only type checkers read."""
    if on_import and isinstance(node, FUNCTIONS):
        return
    for_types = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    for child in node.orelse if on_import and for_types else ast.iter_child_nodes(node):
        yield child
        yield from inside(child, on_import=on_import)


def imports(tree: ast.AST, *, on_import: bool = False) -> Iterator[str]:
    """The full dotted names that are imported."""
    for node in inside(tree, on_import=on_import):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def functions(
    node: ast.AST, outer: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], ast.AST]]:
    """Each node with the names of the classes and functions around it."""
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        around = (*outer, child.name) if named else outer
        yield around, child
        yield from functions(child, around)


def swallows_all(node: ast.AST) -> bool:
    """Whether the node catches every exception and does not end by raising one."""
    if isinstance(node, ast.ExceptHandler):
        caught = node.type
        names = {getattr(n, "id", None) for n in ast.walk(caught)} if caught else BROAD
        return bool(names & BROAD) and not isinstance(node.body[-1], ast.Raise)
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
        return any(ast.unparse(argument) in BROAD for argument in node.args)
    return False


def test_only_sdk_imports_the_sdk() -> None:
    importers = {
        source
        for source, tree in SOURCES.items()
        if any(f"{name}.".startswith("opentelemetry.sdk.") for name in imports(tree))
    }
    assert importers
    assert {source for source in importers if not source.startswith("sdk/")} == set()


def test_only_settings_reads_the_environment() -> None:
    readers = {
        source
        for source, tree in SOURCES.items()
        if {"os.environ", "os.environb", "os.getenv"}
        & {*imports(tree), *(ast.unparse(n) for n in inside(tree) if isinstance(n, ast.Attribute))}
    }
    assert readers
    assert {source for source in readers if not source.startswith("settings")} == set()


@pytest.mark.parametrize("source", SOURCES)
def test_no_framework_is_imported(source: str) -> None:
    """Nowhere when a module loads; in a function only by the hooks, which run inside an agent."""
    hooks = source.startswith("instrumentation/")
    allowed = IMPORTABLE | ALSO_IMPORTABLE.get(source.split("/", maxsplit=1)[0], set())
    imported = {name.split(".")[0] for name in imports(SOURCES[source], on_import=hooks)}
    assert imported <= allowed


def test_all_modules_import_without_a_warning_and_without_a_framework() -> None:
    program = (
        "import importlib, pkgutil, sys, otel_loopguard as package\n"
        "for found in pkgutil.walk_packages(package.__path__, 'otel_loopguard.'):\n"
        "    found.name.endswith('__main__') or importlib.import_module(found.name)\n"
        "print(*sys.modules, sep='\\n')"
    )
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    frameworks = {"openai", "anthropic", "langchain", "langchain_core", "langgraph"}
    assert frameworks & set(done.stdout.split()) == set()


def test_every_broad_except_is_a_named_boundary() -> None:
    swallowing = {
        f"{source} {'.'.join(around)}"
        for source, tree in SOURCES.items()
        for around, node in functions(tree)
        if swallows_all(node)
    }
    assert swallowing == BOUNDARIES


def budget(path: Path) -> int:
    if path.parent == PACKAGE / "core" / "detectors" and path.stem != "base":
        return 80
    if path.parent == PACKAGE / "instrumentation" and path.stem in FRAMEWORKS:
        return 60
    return 300


@pytest.mark.parametrize(
    "path",
    sorted([*PACKAGE.rglob("*.py"), *EXAMPLES.rglob("*.py")]),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_file_keeps_its_budget_of_lines(path: Path) -> None:
    assert lines(path) <= budget(path)


def test_nine_of_ten_functions_have_at_most_thirty_lines() -> None:
    lengths = [
        node.end_lineno - node.lineno + 1
        for tree in SOURCES.values()
        for node in inside(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno
    ]
    assert quantiles(lengths, n=10)[-1] <= 30


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("try: pass\nexcept: pass", True),
        ("try: pass\nexcept Exception: log()", True),
        ("try: pass\nexcept (ValueError, BaseException): pass", True),
        ("try: pass\nexcept ValueError: pass", False),
        ("try: pass\nexcept Exception:\n    undo()\n    raise", False),
        ("with contextlib.suppress(Exception): pass", True),
        ("with suppress(KeyError): pass", False),
    ],
)
def test_a_broad_except_is_recognized(code: str, expected: bool) -> None:
    assert any(swallows_all(node) for node in ast.walk(ast.parse(code))) is expected


def test_imports_in_functions_and_for_type_checkers_are_told_apart() -> None:
    tree = ast.parse(
        "if TYPE_CHECKING:\n    import openai\nelse:\n    import anthropic\n"
        "class C:\n    import wrapt\n    def f():\n        from langgraph import graph\n"
    )
    assert set(imports(tree, on_import=True)) == {"anthropic", "wrapt"}
    assert set(imports(tree)) == {"anthropic", "wrapt", "openai", "langgraph.graph"}
