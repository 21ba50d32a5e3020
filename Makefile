# The front door: each target installs what is missing, configures, and builds what it needs.
# CMake does the work; `make help` lists the targets. Settings, with their defaults:
#   make test JOBS=4                  parallel compile jobs (all cores)
#   make test TEST_JOBS=4             parallel test programs (2; each has a thread pool of its own)
#   make CMAKE_ARGS=-DBRRR_CUDA=OFF   anything more for CMake (nothing)
#   make INSTALL_PACKAGES=no          libraries come from elsewhere; leave the system alone (yes)

BUILD_DIR        := build
JOBS             ?= $(shell nproc 2>/dev/null || echo 2)
TEST_JOBS        ?= 2
CMAKE_ARGS       ?=
INSTALL_PACKAGES ?= yes
BUILD            := cmake --build $(BUILD_DIR) -j $(JOBS)

.DEFAULT_GOAL := all
.PHONY: all test demo demo-test lecture bench gpu-check deps configure format clean help

all: configure  ## build the program, build/bin/brrr
	$(BUILD) --target brrr_cli

test: configure  ## build everything and run all tests
	$(BUILD)
	ctest --test-dir $(BUILD_DIR) --output-on-failure --no-tests=error -j $(TEST_JOBS)

demo: all  ## train a small model on stories, in three minutes, and let it write
	$(BUILD_DIR)/bin/brrr train

demo-test: configure  ## the same as a test: what the model writes are stories, and new ones
	$(BUILD) --target test_train
	ctest --test-dir $(BUILD_DIR) -C demo -L demo --verbose --no-tests=error

lecture: configure  ## build and run the lecture example
	$(BUILD) --target example_lecture_cruncher
	$(BUILD_DIR)/bin/examples/lecture_cruncher

bench: configure  ## build and run all benchmarks
	$(BUILD) --target brrr_benchmarks
	@for program in $(BUILD_DIR)/bin/bench/*_bench; do \
	  [ -x "$$program" ] || { echo "no benchmarks in bench/ yet"; break; }; \
	  echo "== $$program"; "$$program" || exit 1; \
	done

gpu-check: configure  ## tests, sweep, sanitizer and benchmarks on the GPU of this machine
	$(BUILD) --target brrr_cli test_cuda
	tools/gpu_check.sh --bin $(BUILD_DIR)/bin --out $(BUILD_DIR)/gpu-check

deps:  ## install the packages brrr needs (silent when they are there)
ifeq ($(INSTALL_PACKAGES),yes)
	@tools/install_packages.sh
endif

# Ninja is looked for here and not above, since it may only have arrived with deps. The variable is a
# default: an already configured folder keeps its generator. Configuring again costs a second.
configure: deps
	@if command -v ninja >/dev/null; then export CMAKE_GENERATOR=$${CMAKE_GENERATOR:-Ninja}; fi; \
	cmake -S . -B $(BUILD_DIR) $(CMAKE_ARGS)

format:  ## rewrite all sources in the project's format
	@tools/install_packages.sh --checks
	tools/format.sh

clean:  ## remove build/, the sanitizer builds in it included
	rm -rf $(BUILD_DIR)

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' Makefile
