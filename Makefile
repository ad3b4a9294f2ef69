# Commands for developers. Needs git, make and Python 3.10 or newer; the rest goes into .venv.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.developed
COMMA := ,
# One more than the number of cores, because many tests wait for a process or a timer.
JOBS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
# Extras to install; `cpu,rtx` adds TensorRT-RTX, so that engines can be built.
EXTRAS ?= cpu
# What CI always runs. It runs the slow ones, too, while its time lasts.
CHECKED := not bench and not exhaustive and not slow and not models and not rtx and not ssh
# The tests to run while one works on a change.
QUICK := not broad and $(CHECKED)
SLOW := (slow or models or rtx or ssh) and not bench and not exhaustive
# Failed tests run once more, alone: one of 10,000 tests with threads and processes may fail on a
# busy machine. pytest names it both times. Such a test is flaky: fix it.
again = { test $$? = 1 && echo "failed tests run once more, alone" >&2 && \
  $(BIN)/python -m pytest -x --last-failed --last-failed-no-failures none -m '$(1)'; }
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test test-all conformance test-aarch64 check check-slow bench wheels costs runtimes references site screenshots lock format clean

help:  ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed 's/:.*##/\t/' | expand -t 14

# JetPack installs TensorRT only for the system's Python, whose environments can see it.
# Without --compile, Python compiles modules at their first import, and most are never imported.
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

test: $(DEVELOPED)  ## run the quick tests: all of make check but those marked broad
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --hypothesis-profile quick -m '$(QUICK)'

test-all: $(DEVELOPED)  ## run every test
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --hypothesis-profile thorough -m 'not bench'

check: $(DEVELOPED)  ## run what CI always runs: format, lint, types, import contracts, rules, and all tests but the slow tiers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.house_rules
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m '$(CHECKED)' || $(call again,$(CHECKED))

check-slow: $(DEVELOPED)  ## run the slow tests, except exhaustive ones: models, TensorRT-RTX, SSH
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --hypothesis-profile thorough -m '$(SLOW)' || $(call again,$(SLOW))

conformance: $(DEVELOPED)  ## check our TensorRT calls against the bindings of ten versions
	@$(BIN)/python -m pytest -q -rP tests/backends/test_tensorrt_conformance.py -m 'not slow' | grep -E '^(TensorRT|[0-9]+ (passed|failed)|FAILED|ERROR)'

test-aarch64:  ## install and run on an emulated arm64 machine: root, debootstrap and qemu-user
	@$(PYTHON) -m scripts.aarch64

bench: $(DEVELOPED)  ## measure speed and memory next to other tools
	@$(BIN)/python -m benchmarks

wheels: $(DEVELOPED)  ## check that all dependencies have wheels for Jetson (aarch64)
	@$(BIN)/python -m scripts.check_wheels

costs: $(DEVELOPED)  ## measure the download and disk size of each extra
	@$(BIN)/python -m scripts.costs

runtimes: $(DEVELOPED)  ## run tests with the oldest and the newest ONNX Runtime
	@$(BIN)/python -m scripts.runtimes

references: $(DEVELOPED)  ## write the reference of commands, the man page and the completions anew
	@$(BIN)/python -m scripts.references

site: $(DEVELOPED)  ## build the documentation as a site with search; a dead link fails
	@$(PIP) --requirement requirements/site.txt
	@$(BIN)/python -m scripts.site

screenshots: $(DEVELOPED)  ## regenerate the pictures of the documentation
	@$(BIN)/python -m scripts.screenshots

lock: $(DEVELOPED)  ## resolve requirements/constraints.txt again
	@$(BIN)/python -m scripts.lock

format: $(DEVELOPED)  ## format the code and apply the linter's fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove caches and build outputs, but not .venv
	rm -rf build dist .hypothesis .import_linter_cache .mypy_cache \
	  .pytest_cache .ruff_cache benchmarks/.data benchmarks/results
	find src tests scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
