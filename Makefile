# Everything a developer runs. Needs git, make and Python 3.10 or newer; the rest goes into .venv.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.developed
COMMA := ,
# One more than there are cores: many tests wait for a process or a timer.
JOBS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
# What is installed beside the base; `cpu,rtx` adds TensorRT-RTX, so that engines are built.
EXTRAS ?= cpu
# The tests that CI runs.
CI := not bench and not exhaustive
# What failed runs once more, alone: of 10,000 tests with threads and processes one may fail by the
# machine's doing. pytest names it both times, and it is a fault to be mended (CONTRIBUTING.md).
AGAIN := { test $$? = 1 && echo "what failed runs once more, alone" >&2 && \
  $(BIN)/python -m pytest -x --last-failed --last-failed-no-failures none -m '$(CI)'; }
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test test-all conformance test-aarch64 check bench wheels costs screenshots lock format clean

help:  ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed 's/:.*##/\t/' | expand -t 14

# JetPack installs TensorRT for the system's Python alone; an environment of that Python can see it.
# Python compiles a module when it is first imported: most of them never are.
define install
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
  { echo "Python 3.10 or newer is needed; try make PYTHON=python3.12" >&2; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
  { echo "Python's venv is missing; install it: apt-get install python3-venv" >&2; exit 1; }
test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
  `$(PYTHON) -Ic 'import sys; from importlib.util import find_spec; \
    print("--system-site-packages" if sys.prefix == sys.base_prefix and find_spec("tensorrt") else "")'`
$(PIP) --no-compile --constraint requirements/constraints.txt \
  --constraint requirements/tensorrt.txt --editable '.[$(1)]'
endef

$(INSTALLED): pyproject.toml requirements/constraints.txt requirements/tensorrt.txt
	$(call install,$(EXTRAS))
	@touch $@

$(DEVELOPED): pyproject.toml requirements/constraints.txt requirements/tensorrt.txt
	$(call install,$(EXTRAS)$(COMMA)dev)
	@touch $(INSTALLED) $@

demo: $(INSTALLED)  ## profile the built-in sample model and open the report
	@$(BIN)/dld demo

test: $(DEVELOPED)  ## run the tests, but for the tiers that take long
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m '$(CI) and not models and not rtx and not slow and not ssh'

test-all: $(DEVELOPED)  ## run every test
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'not bench'

check: $(DEVELOPED)  ## what CI runs: format, lint, types, import contracts, tests but exhaustive ones
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m '$(CI)' || $(AGAIN)

conformance: $(DEVELOPED)  ## hold what is asked of TensorRT against the bindings of ten versions
	@$(BIN)/python -m pytest -q -rP tests/backends/test_tensorrt_conformance.py -m 'not slow' | grep -E '^(TensorRT|[0-9]+ (passed|failed)|FAILED|ERROR)'

test-aarch64:  ## install and run on an emulated arm64 machine: root, debootstrap and qemu-user
	@$(PYTHON) -m scripts.aarch64

bench: $(DEVELOPED)  ## measure speed and memory beside the peers
	@$(BIN)/python -m benchmarks

wheels: $(DEVELOPED)  ## show that all dependencies have wheels for Jetson (aarch64)
	@$(BIN)/python -m scripts.check_wheels

costs: $(DEVELOPED)  ## measure what each extra downloads and takes on the disk
	@$(BIN)/python -m scripts.costs

screenshots: $(DEVELOPED)  ## take the pictures of the documentation again
	@$(BIN)/python -m scripts.screenshots

lock: $(DEVELOPED)  ## resolve requirements/constraints.txt again
	@$(BIN)/python -m scripts.lock

format: $(DEVELOPED)  ## format the code and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove caches and what was built; .venv stays
	rm -rf build dist snapshot_report.html .hypothesis .import_linter_cache .mypy_cache \
	  .pytest_cache .ruff_cache benchmarks/.data benchmarks/results
	find src tests scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
