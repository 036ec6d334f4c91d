# The front door. The build itself is meson's; each target first sees to the packages it needs.
BUILD ?= build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
STRESS ?= 200000
MESON_OPTIONS ?= # for every build directory: -Dwerror=true
export MESON_OPTIONS
TESTS ?= # of meson test: --no-suite conformance-remote, or a test's name

.NOTPARALLEL:
.PHONY: all everything run test conformance lint bench bindings-test fuzz stress advisories coverage install uninstall dist screens deb dist-test clean
all: deps-build
	@tools/build $(BUILD)
	@ninja -C $(BUILD) product

# with the tests
everything: deps-build-test
	@tools/build $(BUILD) -Dtests=enabled
	@ninja -C $(BUILD)

deps-%:
	@tools/deps $(subst -, ,$*)

run: all
	@tools/demo $(BUILD)

test: everything
	@tools/npm-packages tests/mcp/packages $(BUILD)/mcp-packages
	@tools/npm-packages tests/doubles $(BUILD)/sdk
	@tools/run-tests $(BUILD) --no-suite conformance-derived $(TESTS)

# all of the suite on all backends; takes half an hour
conformance: deps-engine everything
	@tools/npm-packages tests/doubles $(BUILD)/sdk
	@tools/run-tests $(BUILD) --suite conformance --suite conformance-remote \
	    --suite conformance-derived

lint: deps-lint all
	@tools/lint $(BUILD)

bench: deps-bench everything
	@tools/bench $(BUILD)

# the packages for Node, Python and Go, installed from their files; downloads their tools
bindings-test: deps-build-bindings all
	@tools/bindings-test $(BUILD)

fuzz: deps-build-test-clang
	@CC=clang tools/build $(BUILD)-fuzz -Dtests=enabled -Dfuzz=true -Db_sanitize=address,undefined \
	    -Db_lundef=false -Dkeeper=native -Dc_args=-fsanitize=fuzzer-no-link
	@tools/fuzz $(BUILD)-fuzz $(FUZZ_SECONDS)

stress: everything
	@tools/stress $(BUILD) $(STRESS)

# docs/advisories.md: published advisories, in caisson and in other products
advisories: everything
	@tests/advisories/compare $(BUILD)

coverage: deps-build-test-coverage
	@tools/build $(BUILD)-cov -Dtests=enabled -Db_coverage=true -Dkeeper=native \
	    -Dc_args=-fprofile-update=atomic
	@ninja -C $(BUILD)-cov
	@tools/run-tests $(BUILD)-cov --timeout-multiplier 2 --suite unit --suite conformance \
	    --suite cli --suite escape --suite net # not as another user: who may not write the counters
	@tools/coverage $(BUILD)-cov

# meson would take a relative one for one below the build directory
AT = $(if $(DESTDIR),DESTDIR="$$(realpath -m "$(DESTDIR)")")

# A library in a directory of the system is found after ldconfig.
install: deps-build
	@tools/build $(BUILD) --prefix=$(PREFIX)
	@ninja -C $(BUILD) product
	@$(AT) meson install -C $(BUILD) --no-rebuild
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig

# what install with the same PREFIX and DESTDIR puts there
uninstall: deps-build
	@tools/build $(BUILD) --prefix=$(PREFIX)
	@ninja -C $(BUILD) product
	@$(AT) tools/uninstall $(BUILD)

# one archive, to be unpacked anywhere: caisson-VERSION-linux-ARCH.tar.gz
dist: deps-build
	@tools/dist $(BUILD)-dist

# the screens of tests/cli/screens, played with that archive
screens: deps-build-test dist
	@ARCHIVE=$$(ls $(BUILD)-dist/caisson-*.tar.gz) tests/cli/screens.sh caller
	@ARCHIVE=$$(ls $(BUILD)-dist/caisson-*.tar.gz) tests/cli/screens.sh user

# Debian packages, checked by lintian
deb: deps-build-deb
	@tools/deb $(BUILD)-deb

# both, in fresh roots of Debian 12 and 13 and one without glibc; minutes, as root
dist-test: deps-roots dist deb
	@tests/install/roots.sh $(BUILD)-dist $(BUILD)-deb $(BUILD)-roots

clean:
	@rm -rf $(BUILD) $(BUILD)-fuzz $(BUILD)-cov $(BUILD)-ci $(BUILD)-dist $(BUILD)-deb $(BUILD)-roots
