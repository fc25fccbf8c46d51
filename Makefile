# make          set up, then run the main job: compile, header, registry, audit, verify
# make test     set up, then the whole test suite
# make lint     types, lint, format
# make bench    timings (never part of the tests): of ssmtool, issue slots, and on a card the kernels' times
# make mutants  wrong kernels, each of which must be caught; writes docs/mutants.md

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: all build verify test lint bench mutants clean

all: build verify

# Editable, so that a change in ssmtool/ needs no second install; again only when the dependencies may have changed.
$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m compileall -q ssmtool
	touch $@

# Checks the hashes of what is installed, so it costs little when there is nothing to do.
.PHONY: toolchain
toolchain: $(VENV)/installed
	$(BIN)/ssmtool --quiet toolchain install

build: toolchain
	$(BIN)/ssmtool build
	$(BIN)/ssmtool audit-ptx --resources

# On the GPUs of this machine if there are any, else on the CPU; the last line says which.
verify: build
	$(BIN)/ssmtool verify

test: toolchain
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: toolchain
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/build.py
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python benchmarks/execute.py
	$(BIN)/ssmtool bench --device cpu
	@if $(BIN)/python -c "from ssmtool.device import open_devices; open_devices('cuda').close()" 2>/dev/null; then \
	    echo $(BIN)/ssmtool bench --snapshots; $(BIN)/ssmtool bench --snapshots; \
	else echo "no card here: the times were not measured (ssmtool doctor says why)"; fi

mutants: toolchain
	$(BIN)/python tools/mutants

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
