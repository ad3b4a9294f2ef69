# Everything a developer runs. Needs git, make and Python 3.10 or newer; the rest goes into .venv.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# One more than there are cores: many tests wait for a process or a timer.
JOBS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
# What is installed beside the base; `cpu,dev,rtx` adds TensorRT-RTX, so that engines are built.
EXTRAS ?= cpu,dev

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check bench wheels screenshots lock format clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed 's/:.*##/\t/' | expand -t 10

$(INSTALLED): pyproject.toml requirements/constraints.txt requirements/tensorrt.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "Python 3.10 or newer is needed; try make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Python's venv is missing; install it: apt-get install python3-venv" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --constraint requirements/constraints.txt --constraint requirements/tensorrt.txt \
	  --editable '.[$(EXTRAS)]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
	  --constraint requirements/tensorrt.txt tensorrt-stubs \
	  || echo "tensorrt-stubs cannot be installed: the names of TensorRT are not checked" >&2
	$(BIN)/python -m scripts.type_stubs
	@touch $@

demo: $(INSTALLED)  ## profile the built-in sample model and open the report
	@$(BIN)/dld demo

test: $(INSTALLED)  ## run the tests, but for the tiers that take long
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'not bench and not models and not rtx and not slow and not ssh'

test-all: $(INSTALLED)  ## run every test
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'not bench'

check: $(INSTALLED)  ## what CI runs: format, lint, types, import contracts, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'not bench'

bench: $(INSTALLED)  ## measure speed and memory beside the peers
	@$(BIN)/python -m benchmarks

wheels: $(INSTALLED)  ## show that all dependencies have wheels for Jetson (aarch64)
	@$(BIN)/python -m scripts.check_wheels

screenshots: $(INSTALLED)  ## take the pictures of the documentation again
	@$(BIN)/python -m scripts.screenshots

lock: $(INSTALLED)  ## resolve requirements/constraints.txt again
	@$(BIN)/python -m scripts.lock

format: $(INSTALLED)  ## format the code and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove caches and what was built; .venv stays
	rm -rf build dist snapshot_report.html .hypothesis .import_linter_cache .mypy_cache \
	  .pytest_cache .ruff_cache benchmarks/.data benchmarks/results
	find src tests scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
