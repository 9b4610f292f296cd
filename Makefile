# demo: see it work; test: prove it works. Both make .venv by themselves and may be run twice.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: help demo test offline browser crash soak lint format docs bench fuzz api e2e dist clean
help:
	@echo "make demo    index sample sessions into a store of its own and ask it three questions"
	@echo "make test    install the development tools and run all tests (YESTER_TEST_POSTGRES: tests/postgres.py)"
	@echo "make offline the same tests where there is no network but loopback (Linux)"
	@echo "make browser the viewer in a real browser (Debian: apt install chromium; or CHROMIUM=path)"
	@echo "make crash   the same kill -9 tests, many more rounds"
	@echo "make soak    60 events a second for SECONDS=120, with questions, indexing and the viewer beside it"
	@echo "make lint    ruff and mypy"
	@echo "make docs    write the reference pages from the code"
	@echo "make bench   measure indexing (MEMDATA=folder of transcripts; default: the samples)"
	@echo "make fuzz    fuzz every reader for SECONDS=120"
	@echo "make api     schemathesis against the HTTP server, EXAMPLES=50 requests and more an endpoint"
	@echo "make e2e     the built wheel in a fresh environment; real Claude Code ($$YESTER_CLIENTS)"
	@echo "make dist    wheel and sdist into dist/, the same bytes wherever they are built"
	@echo "make clean   remove what the other targets made"

$(VENV)/made:
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or newer is needed; install it, or name it: make PYTHON=/path/to/python3 …" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "make: $(PYTHON) has no venv module; install it (Debian: apt install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/installed: $(VENV)/made pyproject.toml
	@echo "installing yester into $(VENV)"
	@$(PIP) install -e . || { echo "make: installing failed; is the package registry reachable?" >&2; exit 1; }
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed pyproject.toml
	@echo "installing the development tools into $(VENV)"
	@$(PIP) install -e '.[dev]' || { echo "make: installing failed; is the package registry reachable?" >&2; exit 1; }
	@touch $@

demo: $(VENV)/installed
	@$(BIN)/python examples/demo.py

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not e2e and not browser and not crash"
	$(BIN)/python -m pytest -q -n auto -m crash

# In a network namespace of its own: whatever would leave the machine fails.
TESTS ?= tests
offline: $(VENV)/installed-dev
	unshare $$(test "$$(id -u)" = 0 || echo -r) -n sh -c 'ip link set lo up && \
		exec $(BIN)/python -m pytest -q -n auto --dist worksteal -m "not e2e and not browser and not crash" $(TESTS)'

# Needs a chromium of the system's own; none is ever downloaded. Without one the tests are skipped.
browser: $(VENV)/installed-dev
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 -m browser

crash: $(VENV)/installed-dev
	YESTER_KILLS=200 $(BIN)/python -m pytest -q -m crash

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/installed-dev
	$(BIN)/python docs/generate.py

bench: $(VENV)/installed-dev
	$(BIN)/python bench/index.py $(MEMDATA)

# Seconds of fuzzing; seeds are the samples and the readers' own notion of a file.
SECONDS ?= 120
fuzz: $(VENV)/installed-dev
	@$(PIP) install -e '.[fuzz]' || { echo "make: atheris cannot be installed here (it needs Linux and a wheel for this Python)" >&2; exit 1; }
	$(BIN)/python tests/fuzz/readers.py -max_total_time=$(SECONDS) -max_len=4096 -verbosity=0

soak: $(VENV)/installed-dev
	$(BIN)/python -m bench.soak $(SECONDS)

EXAMPLES ?= 50
api: $(VENV)/installed-dev
	$(BIN)/python tests/fuzz/api.py $(EXAMPLES)

e2e: $(VENV)/installed-dev
	$(BIN)/python -m pytest -q -m e2e

dist: $(VENV)/installed-dev
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist

clean:
	rm -rf $(VENV) .demo dist build .pytest_cache .ruff_cache .mypy_cache .hypothesis
