"""What users install: the sdist, the wheel made from it, and a virtual environment with that wheel alone."""

import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMPILED = sorted(path.stem for path in (ROOT / "src" / "fastdisco").glob("*.pyx"))
UNPACKED = (
    *("src", "bench", "tests", "docs"),
    *("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "Makefile", "CHANGELOG.md", "CONTRIBUTING.md"),
)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of a copy of the tree, so that nothing built here is picked up or overwritten."""
    folder = tmp_path_factory.mktemp("sdist")
    tree = folder / "tree"
    tree.mkdir()
    for name in UNPACKED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info"))
        elif source.exists():
            shutil.copy(source, tree / name)
    program = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, str(folder)], cwd=tree, check=True, capture_output=True)
    (made,) = folder.glob("*.tar.gz")
    return made


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, compiled from the sdist with the Cython that is installed here."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(sdist)], check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


@pytest.mark.slow
def test_an_sdist_has_every_source_and_nothing_compiled(sdist: Path) -> None:
    """A wheel can be made from it anywhere."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    sources = {str(path.relative_to(ROOT)) for suffix in ("py", "pyx", "pxd", "pyi", "h") for path in (ROOT / "src").rglob(f"*.{suffix}")}
    sources |= {str(path.relative_to(ROOT)) for path in (ROOT / "bench").rglob("*.py")}
    assert sources | {"bench/README.md", "pyproject.toml", "setup.py", "src/fastdisco/py.typed"} <= names
    assert not [name for name in names if name.endswith((".so", ".pyc"))]


@pytest.mark.slow
def test_a_wheel_has_the_compiled_modules_their_stubs_and_py_typed(wheel: Path) -> None:
    """Type checkers see the stubs; C sources stay behind."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for module in COMPILED:
        assert [name for name in names if name.startswith(f"fastdisco/{module}.") and name.endswith(".so")]
        assert f"fastdisco/{module}.pyi" in names
    assert "fastdisco/py.typed" in names
    for folder, package in (("src/fastdisco", "fastdisco"), ("bench", "fastdisco_bench")):
        assert {f"{package}/{path.relative_to(ROOT / folder)}" for path in (ROOT / folder).rglob("*.py")} <= set(names)
    assert not [name for name in names if name.endswith((".pyx", ".c", ".h")) or name.startswith("tests/")]


@pytest.mark.slow
def test_an_installed_wheel_runs_without_a_compiler(wheel: Path, tmp_path: Path) -> None:
    """In a new virtual environment, with nothing on PATH, the package and its program start."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    (packages,) = (home / "lib").glob("python*/site-packages")
    (here,) = {path for path in map(Path, sys.path) if path.name == "site-packages" and path.is_relative_to(sys.prefix)}
    (packages / "dependencies.pth").write_text(f"{here}\n")  # the dependencies of this environment, behind the wheel's own package
    program = "import fastdisco, importlib, sys; list(map(importlib.import_module, sys.argv[1:])); print(fastdisco.__file__)"
    modules = [f"fastdisco.{name}" for name in COMPILED]
    done = subprocess.run([python, "-c", program, *modules], env={"PATH": ""}, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert Path(done.stdout.strip()).is_relative_to(home)
    subprocess.run([home / "bin" / "fastdisco", "--help"], env={"PATH": ""}, cwd=tmp_path, check=True, capture_output=True)
    measure = [str(home / "bin" / "fastdisco-bench"), "--quick", "--pods", "20", "--stages", "roles,decode"]
    done = subprocess.run(measure, env={"PATH": ""}, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "decode: 20 pods: throughput: fastdisco" in done.stdout


@pytest.mark.slow
def test_an_editable_install_has_both_packages(tmp_path: Path) -> None:
    """From a copy of the tree, compiled parts included: the package and its bench are those of that tree."""
    tree, home = tmp_path / "tree", tmp_path / "venv"
    tree.mkdir()
    for name in (*UNPACKED, "build"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        elif source.exists():
            shutil.copy2(source, tree / name)
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    (packages,) = (home / "lib").glob("python*/site-packages")
    (here,) = {path for path in map(Path, sys.path) if path.name == "site-packages" and path.is_relative_to(sys.prefix)}
    (packages / "zz-dependencies.pth").write_text(f"import sys; sys.path.append({str(here)!r})\n")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, "--no-build-isolation", "--editable", str(tree)], check=True, capture_output=True)
    program = "import fastdisco, fastdisco_bench.stages as stages; print(fastdisco.__file__, stages.__file__)"
    done = subprocess.run([python, "-c", program], env={"PATH": ""}, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.split() == [str(tree / "src/fastdisco/__init__.py"), str(tree / "bench/stages/__init__.py")]
