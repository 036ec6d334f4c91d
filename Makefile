# The front door. The build itself is meson's; each target first sees to the packages it needs.
BUILD ?= build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
STRESS ?= 200000
TESTS ?= # of meson test: --no-suite conformance-remote, or a test's name

.NOTPARALLEL:
.PHONY: all run test conformance lint bench fuzz stress advisories coverage install clean
all: deps-build
	@tools/build $(BUILD)
	@ninja -C $(BUILD)

deps-%:
	@tools/deps $(subst -, ,$*)

run: all
	@tools/demo $(BUILD)

test: deps-build-test all
	@tools/npm-packages tests/mcp/packages $(BUILD)/mcp-packages
	@tools/npm-packages tests/doubles $(BUILD)/sdk
	@tools/run-tests $(BUILD) --no-suite conformance-derived $(TESTS)

# all of the suite on all backends; takes half an hour
conformance: deps-build-test-engine all
	@tools/npm-packages tests/doubles $(BUILD)/sdk
	@tools/run-tests $(BUILD) --suite conformance --suite conformance-remote \
	    --suite conformance-derived

lint: deps-build-test-lint all
	@tools/lint $(BUILD)

bench: deps-build-bench all
	@tools/bench $(BUILD)

fuzz: deps-build-clang
	@CC=clang tools/build $(BUILD)-fuzz -Dfuzz=true -Db_sanitize=address,undefined \
	    -Db_lundef=false -Dkeeper=native -Dc_args=-fsanitize=fuzzer-no-link
	@tools/fuzz $(BUILD)-fuzz $(FUZZ_SECONDS)

stress: deps-build-test all
	@tools/stress $(BUILD) $(STRESS)

# docs/advisories.md: published advisories, in caisson and in other products
advisories: deps-build-test all
	@tests/advisories/compare $(BUILD)

coverage: deps-build-test-coverage
	@tools/build $(BUILD)-cov -Db_coverage=true -Dkeeper=native \
	    -Dc_args=-fprofile-update=atomic
	@ninja -C $(BUILD)-cov
	@tools/run-tests $(BUILD)-cov --timeout-multiplier 2 --suite unit --suite conformance \
	    --suite cli --suite escape --suite net # not as another user: who may not write the counters
	@tools/coverage $(BUILD)-cov

install: all
	@meson configure $(BUILD) --prefix=$(PREFIX)
	@meson install -C $(BUILD)

clean:
	@rm -rf $(BUILD) $(BUILD)-fuzz $(BUILD)-cov $(BUILD)-ci
