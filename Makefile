# GNU make 3.81 or later and a POSIX shell (Linux, macOS)

PYTHON ?=
DISK_GB ?= 10
JOBS ?= 2
export PYTHON DISK_GB

VENV_PYTHON = .venv/bin/python
# models of the tests are small: a second thread only waits, a second process
# does not; the tests of a file share what was made for them
PYTEST = OMP_NUM_THREADS=1 $(VENV_PYTHON) -m pytest -n $(JOBS) --dist loadfile

.PHONY: help install demo test test-slow lint docs clean

help:
	@echo 'make demo       train, test and draw a small model on drawn leaves'
	@echo 'make test       lint and the quick tests'
	@echo 'make test-slow  wheel and mim, two processes, the demo'
	@echo 'make lint       ruff, codespell and a search for duplicated code'
	@echo 'make docs       the documentation as a site, in docs/_build/html'
	@echo 'make install    what all of the above do first: fills .venv'
	@echo 'make clean      remove .venv, build output and caches'
	@echo 'JOBS=4 runs tests in four processes, where there are cores (default 2).'
	@echo 'PYTHON=/path/to/python3 names the interpreter that .venv is made of.'

install:
	@sh tools/dev/install.sh

demo: install
	$(VENV_PYTHON) tools/demo.py

test: lint
	$(PYTEST) -m 'not slow and not gpu and not alone'
	$(PYTEST) -n 0 -m 'alone' tests/test_benchmark

test-slow: install
	$(PYTEST) -m 'slow and not gpu'

docs: install
	$(VENV_PYTHON) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

lint: install
	@PYTHON=$(VENV_PYTHON) sh tools/dev/lint.sh

clean:
	@sh tools/dev/clean.sh
