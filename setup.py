"""Compiles the extension modules; everything else about the project is in pyproject.toml."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

PACKAGE = Path("src/fastdisco")
SHARED = [str(path) for pattern in ("*.h", "*.pxd") for path in sorted(PACKAGE.glob(pattern))]  # a change of one rebuilds all

# Indices, divisors and memoryviews are checked by hand where they come from input; auto_pickle would only add unusable methods.
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "auto_pickle": False,
}

extensions = [
    Extension(
        f"fastdisco.{source.stem}",
        [str(source)],
        depends=SHARED,
        include_dirs=[str(PACKAGE)],
        extra_compile_args=["-O3"],  # never -march=native: _scan.h chooses its kernel at run time
    )
    for source in sorted(PACKAGE.glob("*.pyx"))
]

setup(
    ext_modules=cythonize(extensions, build_dir="build/cython", compiler_directives=DIRECTIVES),
    options={"build_ext": {"parallel": True}},
)
