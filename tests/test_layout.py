"""The shape of the source tree: one line of modules, each importing only from those before it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "fastdisco"
BENCH = ROOT / "bench"

# bytes → events → objects → targets → jobs → export, one group of modules per row.
ORDER = """
version errors sections config totals exposition metrics backoff
relabel_config regexes graphite series_selector rules target_labels scrape_config label_names kubeconfig configuration
proxies auth _dechunker chunk_reader api
_scan _bytes _index _fields _core _parse _json url_reader recovery url_watcher
_labels _parts _batch _writer _targets _endpoints _render roles
_memo _steps _label_list _programs _relabel rule_table absence explanation
_works _subscriber changes direct_loads group_watcher api_watcher thread discovery
_export sidecar synthetic cli __init__ __main__
""".split()
# Of the bench: what a run measures with, runs, what is compared, stages, the report.
BENCH_ORDER = "holds memory jobs machine cases runs peers plan attempts stages report progress __main__".split()
DRAWERS = {"util", "utils", "helper", "helpers", "common", "misc"}

FILES = sorted(path for suffix in ("py", "pyx", "pxd", "pyi") for path in SOURCE.rglob(f"*.{suffix}"))
CYTHON = re.compile(
    r"^[ \t]*(?:from\s+(?P<origin>[.\w]+)\s+c?import\s+\(?(?P<names>[^)#\n]*)|c?import\s+(?P<plain>[\w., \t]+))", re.MULTILINE
)


def module_of(path: Path) -> str:
    """The module, or the sub-package, that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].partition(".")[0]


def imports(path: Path) -> Iterator[str]:
    """Full dotted names of what a file imports; of `from a import b` both a and a.b."""
    package = ("fastdisco", *path.relative_to(SOURCE).parts[:-1])
    for origin, names in statements(path):
        level = len(origin) - len(origin.lstrip("."))
        base = ".".join(filter(None, (*package[: len(package) - level + 1], origin.lstrip(".")))) if level else origin
        if base:
            yield base
        for name in names:
            yield f"{base}.{name}".lstrip(".")


def statements(path: Path) -> Iterator[tuple[str, list[str]]]:
    """(what stands after `from`, the names); Cython's are found by their shape, as no parser for it is at hand."""
    text = path.read_text()
    if path.suffix in {".py", ".pyi"}:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                yield "." * node.level + (node.module or ""), [alias.name for alias in node.names]
            elif isinstance(node, ast.Import):
                yield "", [alias.name for alias in node.names]
        return
    for match in CYTHON.finditer(text):
        listed = match["names"] if match["origin"] else match["plain"]
        yield match["origin"] or "", [name.split()[0] for name in listed.split(",") if name.strip()]


def own_modules(path: Path) -> set[str]:
    """The modules of this package that a file imports, its own left out."""
    parts = (name.split(".") for name in imports(path))
    return {part[1] for part in parts if part[0] == "fastdisco" and len(part) > 1} - {module_of(path), "__version__"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_from_modules_before_it(path: Path) -> None:
    """The flow has one direction, over .py, .pyx, .pxd and .pyi alike; the package's own public names are for others."""
    module = module_of(path)
    assert module in ORDER, f"{module} has no place in the order yet"
    later = {name for name in own_modules(path) if name not in ORDER[: ORDER.index(module)]}
    assert not later, f"{module} imports {', '.join(sorted(later))}, not before it in the order"


@pytest.mark.parametrize("path", sorted(BENCH.rglob("*.py")), ids=lambda path: str(path.relative_to(BENCH)))
def test_a_module_of_the_bench_imports_only_from_modules_before_it(path: Path) -> None:
    """It imports its own modules by place, for the package has two names; so a run that is measured knows nothing of its report."""
    parts = path.relative_to(BENCH).parts
    module = parts[0].partition(".")[0]
    assert module in {*BENCH_ORDER, "__init__"}, f"{module} has no place in the order yet"
    for origin, names in statements(path):
        level = len(origin) - len(origin.lstrip("."))
        assert not origin.startswith(("bench", "fastdisco_bench"))
        if level == len(parts):  # relative to the package itself
            later = set(filter(None, (origin.lstrip(".").partition(".")[0],))) or set(names)
            assert later <= set(BENCH_ORDER[: BENCH_ORDER.index(module)]), f"{module} imports {', '.join(sorted(later))}"


def test_the_import_finder_sees_every_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above is only as good as what it finds."""
    monkeypatch.setattr("tests.test_layout.SOURCE", tmp_path)
    inner = tmp_path / "sidecar" / "pages.py"
    inner.parent.mkdir()
    inner.write_text("import json\nfrom ..roles import ROLES\nfrom .. import api\nfrom . import routes\nfrom fastdisco.config import x\n")
    compiled = tmp_path / "_json.pyx"
    compiled.write_text(
        "from ._core cimport Store\ncimport fastdisco._scan\nfrom . cimport _labels  # late\nfrom fastdisco.errors import (\n    E)\n"
    )
    assert own_modules(inner) == {"roles", "api", "config"}
    assert own_modules(compiled) == {"_core", "_scan", "_labels", "errors"}


def test_no_file_is_a_drawer_for_everything() -> None:
    """A name says what belongs in a file."""
    everywhere = [*FILES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]
    assert not [path for path in everywhere if path.stem in DRAWERS]


def test_every_compiled_module_has_a_stub() -> None:
    """The stub is the face of a compiled module, and what stubtest compares it with."""
    assert not [path.name for path in SOURCE.glob("*.pyx") if not path.with_suffix(".pyi").exists()]
