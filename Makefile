# Everything that a checkout needs, from Python (3.11 or newer, with its headers), gcc and make alone.
#   make run         set up, then discover an embedded synthetic cluster     make lint      ruff, mypy, cython-lint, stubtest
#   make test        set up, then every test whose programs are there        make measure   figures of the engine, on this machine
#   make test-quick  the same without real programs and slow tests           make bench     the same and more, beside other programs
#   make build       set up only                                             make peers     build the real programs
#   make clean       remove all that was made here
# PYTHON=... chooses the interpreter; ARGS=... is passed on to the program, to pytest or to the bench.

SHELL := /bin/bash
.SHELLFLAGS := -eu -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build
.PHONY: build run test test-quick lint measure bench peers clean

VENV := .venv
BIN := $(VENV)/bin
SUITABLE := import os, sys, sysconfig, ensurepip; \
  sys.exit(not (sys.version_info >= (3, 11) and os.path.exists(sysconfig.get_path("include") + "/Python.h")))
PYTHON ?= $(shell for name in python3 python3.11 python3.12 python3.13 python3.14; do \
  if $$name -c '$(SUITABLE)' 2>/dev/null; then echo $$name; break; fi; done)

PYX := $(wildcard src/fastdisco/*.pyx)
MODULES := $(patsubst src/fastdisco/%.pyx,fastdisco.%,$(PYX))
CODE := src tests $(wildcard bench)

build: build/heart.stamp

# The packages that pyproject.toml names: to build, to run, to test.
NAMED := import tomllib; file = tomllib.load(open("pyproject.toml", "rb")); project = file["project"]; \
  print(*file["build-system"]["requires"], *project["dependencies"], *project["optional-dependencies"]["dev"], sep="\n")
$(VENV)/packages.stamp: pyproject.toml
	@[ -n "$(PYTHON)" ] || { echo "No Python 3.11 or newer with headers and venv was found (Debian: python3 python3-dev python3-venv); set PYTHON=..." >&2; exit 1; }
	@echo "setting up $(VENV) with $(PYTHON)"
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c '$(NAMED)' > $(VENV)/packages.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $(VENV)/packages.txt
	@touch $@

# The package itself, editable, and so compiled; after that, only what changed. Without build isolation: both need the same Cython.
MISSING := $(shell for name in $(PYX:.pyx=); do ls $$name.*.so >/dev/null 2>&1 || echo FORCE; done)
.PHONY: FORCE
build/heart.stamp: $(sort $(MISSING)) $(VENV)/packages.stamp setup.py $(PYX) $(wildcard src/fastdisco/*.pxd src/fastdisco/*.h)
	$(if $(filter $(VENV)/packages.stamp,$?),$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .,$(BIN)/python setup.py --quiet build_ext --inplace)
	@mkdir -p build && touch $@

run: build
	@exec $(BIN)/fastdisco run --demo $(ARGS)

test: build
	$(BIN)/python -m pytest $(ARGS)

test-quick: build
	$(BIN)/python -m pytest -m "not peers and not slow" $(ARGS)

lint: build
	$(BIN)/ruff check $(CODE) setup.py
	PATH="$(CURDIR)/$(BIN):$$PATH" cython-lint src/fastdisco  # it calls pycodestyle by name
	$(BIN)/mypy $(CODE)
	$(if $(MODULES),$(BIN)/stubtest --mypy-config-file pyproject.toml --allowlist tests/stubtest-allowlist.txt $(MODULES))

measure: build
	$(BIN)/python -m bench --stages sync,jobs,roles,dialects,turnovers $(ARGS)

# With every peer that is there.
PEERS = $(foreach name,vmagent prometheus,$(if $(shell command -v $${XDG_CACHE_HOME:-$$HOME/.cache}/fastdisco-peers/$(name) $(name)),--peer $(name)))
bench: build/heart.stamp $(VENV)/bench.stamp
	$(BIN)/python -m bench $(PEERS) $(ARGS)

RIVALS := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["bench"], sep="\n")
$(VENV)/bench.stamp: $(VENV)/packages.stamp
	@$(BIN)/python -c '$(RIVALS)' > $(VENV)/bench.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $(VENV)/bench.txt
	@touch $@

peers:
	@tests/peers/build vmagent etcd kube-apiserver prometheus

clean:
	rm -rf $(VENV) build dist src/*.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests $(wildcard bench) -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f src/fastdisco/*.so
