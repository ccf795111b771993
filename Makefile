# make compare   what this machine's mechanisms achieve, in one HTML page
# make test      everything that must hold before a change goes in
# make speed     the bounds on speed, against the bare machine in the same run
# make install   lmt.h, liblmt.so, liblmt.a, lmt.pc, the libfabric provider and the lmt
#                command, under PREFIX
# make wheel     a wheel for pip, with all that MPI programs of Python need
# make deb       Debian packages: lmt, liblmt0, liblmt-dev
# make test-packages  both, installed into fresh folders, used, removed
# make header    capi/include/lmt.h, of the sources
# make fi        the libfabric provider, target/release/liblmt-fi.so
# make apps      MPI programs of Debian and PyPI over lmt and over their MPI's own
#                transport, in turns: a table and one HTML page
# make knem-check  a static program that checks a KNEM driver, for any machine

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.SILENT: test arrows tests test-mpi wheel deb test-packages doctests loom asan miri
.PHONY: compare apps test test-mpi test-packages speed fi install wheel deb header knem-check tools format arrows clippy tests doctests loom asan miri

REPORT ?= lmt-report.html
TARGET := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
# Tests and measurements are of lmt as it is built, not as this user has set it.
export XDG_CONFIG_HOME := $(TARGET)/no-configuration
unexport LMT_CONFIG LMT_MECHANISM LMT_EAGER_MAX LMT_INBOX_EAGER_MAX
unexport LMT_MAX_READERS LMT_DMA_MIN LMT_SINGLE_COPY LMT_STATS
# Crates with loom models, and tests of one process that sanitizers can follow.
LOOM_CRATES ?= lmt-core lmt-shm lmt-knem lmt-ioat lmt-ring lmt-collectives
ASAN_CRATES ?= lmt-copy lmt-core lmt-shm lmt-cma lmt-ring lmt-capi
ASAN_TESTS ?= semantics scope shared regions binding
# Not lmt-capi: its handles ask which process they are in, by a page of madvise(2)
# that fork wipes, and one of its tests makes endpoints.
MIRI_CRATES ?= lmt-copy lmt-core
HOST := x86_64-unknown-linux-gnu

compare: tools
	cargo build --release --package lmt-bench
	"$(TARGET)/release/lmt" compare --output "$(REPORT)"
	echo "The report is $$(realpath "$(REPORT)"); open it in a browser."

# All stages run, whatever fails; what failed is listed at the end.
STAGES ?= format arrows clippy tests doctests loom asan miri
test:
	./.ci/tools for-tests
	mkdir -p "$(TARGET)"
	failed=()
	for stage in $(STAGES); do
	  echo "make test: $$stage"
	  $(MAKE) --no-print-directory "$$stage" 2>&1 | tee "$(TARGET)/test-$$stage.log" || failed+=("$$stage")
	done
	if [ "$${#failed[@]}" != 0 ]; then
	  ./.ci/failures "$(TARGET)" "$${failed[@]}" >&2
	  exit 1
	fi
	echo "make test: all that this machine can check is in order."

tools:
	@./.ci/tools

format:
	cargo fmt --all --check

# No file of the core uses a room above its own, and none use each other in a circle.
arrows:
	if ! command -v python3 >/dev/null; then
	  echo "SKIPPED arrows between files: no python3."
	  [ -z "$${LMT_REQUIRE-}" ]
	  exit
	fi
	./.ci/arrows

clippy:
	cargo clippy --workspace --all-targets -- -D warnings

tests:
	if cargo nextest --version >/dev/null 2>&1; then
	  cargo nextest run --workspace --no-fail-fast
	else
	  echo "cargo-nextest is not installed (cargo install cargo-nextest --locked); using cargo test."
	  # As .config/nextest.toml has it: what measures runs alone.
	  failed=no
	  cargo test --workspace --exclude lmt --lib --bins --tests --examples --no-fail-fast || failed=yes
	  alone="both waiting sharing resources death unexpected steady"
	  others=$$(cd lmt/tests && for file in *.rs; do echo "$${file%.rs}"; done | grep -vxF -f <(tr ' ' '\n' <<<"$$alone"))
	  cargo test --package lmt --lib --examples $$(printf -- '--test %s ' $$others) --no-fail-fast || failed=yes
	  cargo test --package lmt $$(printf -- '--test %s ' $$alone) --no-fail-fast -- --test-threads=1 || failed=yes
	  [ "$$failed" = no ]
	fi

# Not part of `make test`: it takes minutes, and a busy machine fails it.
speed:
	LMT_SPEED=1 cargo test --release -p lmt-bench --test speed -- --nocapture
	LMT_SPEED=1 cargo test --release -p lmt-ioat --test overlap -- --nocapture
	LMT_SPEED=1 cargo test --release -p lmt-selector --test lookup_speed -- --nocapture
	LMT_SPEED=1 cargo test --release -p lmt-copy --test speed -- --nocapture
	LMT_SPEED=1 cargo test --release -p lmt --test matching --test both_speed -- --nocapture --test-threads=1
	LMT_SPEED=1 cargo test --release -p lmt-fi --test calls_example -- --nocapture --test-threads=1

# libfabric takes files that end in -fi.so; cargo names them with an underscore.
fi: tools
	cargo build --release --package lmt-fi
	cp -f "$(TARGET)/release/liblmt_fi.so" "$(TARGET)/release/liblmt-fi.so"
	echo "The provider is $(TARGET)/release/liblmt-fi.so; docs/libfabric.md says how MPIs use it."

# MPI_CACHE is where MPIs and mpi4py are kept; the first time they come from PyPI.
MPI_REQUIRE ?= mpi,intelmpi,mpi4py
MPI_CACHE ?= $(TARGET)/mpi-cache
test-mpi:
	./.ci/tools for-mpis
	mkdir -p "$(MPI_CACHE)"
	cargo build --package lmt-bench --package lmt-fi
	folders=$$("$(TARGET)/debug/lmt" compare --fetch-only --cache "$(MPI_CACHE)" | paste -sd:)
	MPI_FOLDERS="$$folders" MPI_CACHE="$(MPI_CACHE)" LMT_REQUIRE="$(MPI_REQUIRE)" \
	  cargo test --package lmt-fi --test mpi -- --nocapture --test-threads=1
	# The comparisons with MPIs look for them on the PATH; without these, `make test` skips them.
	# What needs no MPI and takes long runs there.
	MPI_FOLDERS="$$folders" PATH="$${folders//:/\/bin:}/bin:$$PATH" LMT_REQUIRE="$(MPI_REQUIRE)" \
	  cargo test --package lmt-bench --test peers --test mpi --test collectives -- --nocapture --test-threads=1 \
	  --skip launcher --skip second_signal --skip killed_one --skip every_operation --skip accesses_at_once --skip in_use_rotated
	# Programs of Debian and of PyPI in short: each must end and be right.
	APPS_PACKAGES="$$("$(TARGET)/debug/lmt" apps --packages --short | paste -sd' ')" ./.ci/tools for-apps
	cp -f "$(TARGET)/debug/liblmt_fi.so" "$(TARGET)/debug/liblmt-fi.so"
	required=
	case ",$(MPI_REQUIRE)," in *,apps,*) required=--require;; esac
	"$(TARGET)/debug/lmt" apps --short $$required --fetch --cache "$(MPI_CACHE)" --out "$(TARGET)/apps-short"
	echo "make test-mpi: $$folders run on lmt."

# Debian's packages are installed where they can be, MPIs and Python's come from PyPI.
# Options of the command, such as --turns 3 or --programs hpcc,lammps-melt.
APPS_ARGS ?=
apps: fi
	cargo build --release --package lmt-bench
	APPS_PACKAGES="$$("$(TARGET)/release/lmt" apps --packages $(APPS_ARGS) | paste -sd' ')" ./.ci/tools for-mpis for-apps
	mkdir -p "$(MPI_CACHE)"
	"$(TARGET)/release/lmt" apps --fetch --cache "$(MPI_CACHE)" $(APPS_ARGS)

# Where `make install` puts things; DESTDIR goes before each, for packages.
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
DESTDIR ?=
# Cargo's profile of what is installed.
PROFILE ?= release
BUILT = $(TARGET)/$(PROFILE:dev=debug)

# To the shell as they are, whatever characters they have.
install: export PREFIX := $(PREFIX)
install: export LIBDIR := $(LIBDIR)
install: export DESTDIR := $(DESTDIR)
install: tools
	for folder in "PREFIX=$$PREFIX" "LIBDIR=$$LIBDIR"; do
	  case "$$folder" in
	  *[[:space:]]*) echo "make install: $$folder has a blank, which pkg-config would take for the end; choose a folder without" >&2; exit 1;;
	  PREFIX=/* | LIBDIR=/*) ;;
	  *) echo "make install: $$folder is no absolute path, which lmt.pc needs; write it from / on" >&2; exit 1;;
	  esac
	done
	cargo build --profile "$(PROFILE)" --package lmt-capi --package lmt-bench --package lmt-fi
	version=$$(cargo pkgid --package lmt-capi)
	version=$${version##*[\#@]}
	soname=$$(readelf --dynamic "$(BUILT)/liblmt_capi.so" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
	prefix="$$DESTDIR$$PREFIX"
	libraries="$$DESTDIR$$LIBDIR"
	install -d "$$prefix/bin" "$$prefix/include" "$$libraries/pkgconfig"
	install -m 755 "$(BUILT)/lmt" "$$prefix/bin/lmt"
	install -m 644 capi/include/lmt.h "$$prefix/include/lmt.h"
	install -m 755 "$(BUILT)/liblmt_capi.so" "$$libraries/liblmt.so.$$version"
	ln -sf "liblmt.so.$$version" "$$libraries/$$soname"
	ln -sf "$$soname" "$$libraries/liblmt.so"
	install -m 644 "$(BUILT)/liblmt_capi.a" "$$libraries/liblmt.a"
	# `lmt mpirun-env` looks for it there, as seen from bin; libfabric wants the name.
	install -m 755 "$(BUILT)/liblmt_fi.so" "$$libraries/liblmt-fi.so"
	strip --strip-debug "$$libraries/liblmt.so.$$version" "$$libraries/liblmt.a" "$$libraries/liblmt-fi.so"
	# What Rust's own library asks of the system's.
	private="-lgcc_s -lpthread -lm -ldl -lrt -lc"
	# What means something to sed in what takes another's place.
	plain() { printf '%s' "$$1" | sed 's/[&|\\]/\\&/g'; }
	sed -e "s|@PREFIX@|$$(plain "$$PREFIX")|; s|@LIBDIR@|$$(plain "$$LIBDIR")|" \
	  -e "s|@VERSION@|$$version|; s|@PRIVATE@|$$(plain "$$private")|" \
	  capi/lmt.pc.in > "$$libraries/pkgconfig/lmt.pc"
	echo "lmt $$version is under $$prefix; docs/c-interface.md says how programs use it."

# Where packages go; what they are made of is in folders there, too.
DIST ?= $(TARGET)/dist
wheel:
	./.ci/tools for-wheel
	cargo build --profile "$(PROFILE)" --package lmt-capi --package lmt-bench --package lmt-fi
	./packaging/make-wheel "$(BUILT)" "$(DIST)"

deb:
	./.ci/tools for-deb
	rm -rf "$(DIST)/installed"
	libraries=/usr/lib/$$(dpkg-architecture --query DEB_HOST_MULTIARCH)
	$(MAKE) --no-print-directory install PREFIX=/usr LIBDIR="$$libraries" DESTDIR="$(DIST)/installed"
	./packaging/make-deb "$(DIST)/installed" "$(DIST)"

test-packages: wheel deb
	./packaging/test-packages "$(DIST)"

# A test compares it, so that it is never behind the sources.
header:
	LMT_WRITE_HEADER=1 cargo test --package lmt-capi --test header

# One file without libraries, to be copied to a machine that has the driver.
knem-check: tools
	RUSTFLAGS="-C target-feature=+crt-static" \
	  cargo build --release --target $(HOST) --package knem-check
	echo "The program is $(TARGET)/$(HOST)/release/knem-check; run it where /dev/knem is."

doctests:
	cargo test --workspace --doc --no-fail-fast

# A separate folder: the flag would have everything built anew, twice.
loom:
	failed=()
	for crate in $(LOOM_CRATES); do
	  if [ "$$(./.ci/has-package $$crate)" = no ]; then
	    echo "SKIPPED loom models of $$crate: no such package in this workspace."
	    continue
	  fi
	  RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$(TARGET)/loom" \
	    cargo test --release --package $$crate --lib --no-fail-fast -- loom | tee "$(TARGET)/loom-$$crate.log" ||
	    failed+=("$$crate")
	  # A filter that matches nothing passes too: that would check nothing.
	  if grep -q 'test result: ok. 0 passed' "$(TARGET)/loom-$$crate.log"; then
	    echo "FAILED no loom model of $$crate ran; their names must contain loom." >&2
	    failed+=("$$crate")
	  fi
	done
	[ "$${#failed[@]}" = 0 ] || { echo "FAILED loom models of $${failed[*]}" >&2; exit 1; }

asan:
	if ! cargo +nightly --version >/dev/null 2>&1; then
	  echo "SKIPPED AddressSanitizer: no nightly toolchain (rustup toolchain install nightly)."
	  exit 0
	fi
	failed=()
	for crate in $(ASAN_CRATES); do
	  if [ "$$(./.ci/has-package $$crate)" = no ]; then
	    echo "SKIPPED AddressSanitizer on $$crate: no such package in this workspace."
	    continue
	  fi
	  RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR="$(TARGET)/asan" \
	    cargo +nightly test --target $(HOST) --package $$crate --lib --no-fail-fast || failed+=("$$crate")
	done
	# Tests of real processes forget memory on purpose, so leaks are not looked for.
	ASAN_OPTIONS=detect_leaks=0 RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR="$(TARGET)/asan" \
	  cargo +nightly test --target $(HOST) --package lmt $(addprefix --test ,$(ASAN_TESTS)) --no-fail-fast ||
	  failed+=(lmt)
	[ "$${#failed[@]}" = 0 ] || { echo "FAILED AddressSanitizer on $${failed[*]}" >&2; exit 1; }

miri:
	if ! cargo +nightly miri --version >/dev/null 2>&1; then
	  echo "SKIPPED Miri: not installed (rustup +nightly component add miri)."
	  exit 0
	fi
	failed=()
	for crate in $(MIRI_CRATES); do
	  MIRIFLAGS="-Zmiri-disable-isolation" CARGO_TARGET_DIR="$(TARGET)/miri" \
	    cargo +nightly miri test --package $$crate --lib || failed+=("$$crate")
	done
	[ "$${#failed[@]}" = 0 ] || { echo "FAILED Miri on $${failed[*]}" >&2; exit 1; }
