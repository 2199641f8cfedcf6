# What people run: make demo, make test. Everything else is named in CONTRIBUTING.md.

CARGO ?= cargo

.PHONY: demo build release deb quick test peers bench studies vm-check long audit man docs clean

# Builds the program and runs the whole loop, inside this machine: as `make test` builds it,
# with what carries packets optimised, which takes half of the time of `make build`.
demo: export CARGO_INCREMENTAL = 0
demo:
	$(CARGO) run --locked -- demo

build:
	$(CARGO) build --release --locked

# What a release offers, into target/dist: a static binary for any Linux with man
# pages, completions, examples and the book, as archive, deb and rpm; install.sh; checksums.
release:
	@scripts/release

# The Debian package alone.
deb:
	@scripts/deb

# While working: what a change touches, in a minute or two.
quick:
	@scripts/quick

# Every check there is but the long ones. CONTRIBUTING.md says what each holds.
# Most tests wait for a path, a peer or a deadline: scripts/run-tests runs them while the
# compiler, clippy and rustdoc have the cores that no test wants.
# From clean, what incremental compilation stores costs more than it saves.
test: export CARGO_INCREMENTAL = 0
test: peers
	$(CARGO) fmt --all --check
	@scripts/check-web
	@CARGO="$(CARGO)" scripts/run-tests
	@scripts/audit --where-possible

# Tests run real programs as peers. Where one is missing and cannot be
# installed, the tests that need it are counted as ignored, never as passed.
peers:
	@scripts/peers

# The promised figures that depend on the machine, beside what they are here.
bench:
	$(CARGO) bench --locked -p longhaul-verify --bench lab
	$(CARGO) bench --locked -p longhaul-verify --bench truth
	$(CARGO) bench --locked -p longhaul-verify --bench kinds
	$(CARGO) bench --locked -p longhaul-verify --bench explain
	$(CARGO) bench --locked -p longhaul-verify --bench remedy
	$(CARGO) bench --locked -p longhaul-verify --bench route
	$(CARGO) bench --locked -p longhaul-cli --bench measure
	$(CARGO) bench --locked -p longhaul-cli --bench capture
	$(CARGO) bench --locked -p longhaul-cli --bench copy
	$(CARGO) bench --locked -p longhaul-cli --bench boost
	$(CARGO) bench --locked -p longhaul-cli --bench udt
	$(CARGO) bench --locked -p longhaul-cli --bench watch
	$(CARGO) bench --locked -p longhaul-cli --bench large_study
	@scripts/web-clients
	$(CARGO) bench --locked -p longhaul-cli --bench web_clients
	$(CARGO) bench --locked -p longhaul-cli --bench web_differs
	$(CARGO) bench --locked -p longhaul-udt-socket --bench throughput
	$(CARGO) bench --locked -p longhaul-capture --bench captures
	$(CARGO) bench --locked -p longhaul-cli --bench capture_page
	$(CARGO) bench --locked -p longhaul-web --bench page
	$(CARGO) bench --locked -p longhaul-web --bench legs
	$(CARGO) bench --locked -p longhaul-web --bench web_loss
	$(CARGO) bench --locked -p longhaul-web --bench web_load
	scripts/bbr3-peer
	scripts/kernel-oracle

# Every built-in study in its short form: fails if a published trend does not hold.
studies:
	@scripts/studies

# The lab beside Linux netem, the demo and the lab's tests, on a stock Debian
# kernel in a virtual machine.
vm-check:
	@scripts/vm-check

# What takes longer than a check may: property tests with many more cases, a
# minute of every attack at once, the examples of ARCHITECTURE.md built and tested,
# and each fuzz target for FUZZ_SECONDS (600).
long: peers
	PROPTEST_CASES=100000 $(CARGO) test --workspace --release --locked --lib --test link --test explain
	LONGHAUL_LONG=1 $(CARGO) test --release --locked -p longhaul-cli --test mixed_attack
	LONGHAUL_LONG=1 $(CARGO) test --locked -p longhaul-cli --test how_to_add --test pcap
	LONGHAUL_LONG=1 $(CARGO) test --release --locked -p longhaul-udt-socket --test interop
	scripts/determinism
	scripts/vm-check short
	scripts/kernel-oracle long
	scripts/fuzz

# Licences are checked by a test as well; known advisories need cargo-deny and
# its database: `make test` checks them where both are at hand, and says where not.
audit:
	@scripts/audit

# Manual pages for a package.
man:
	mkdir -p target/man
	$(CARGO) run --release --locked -- man --dir target/man

# The book in docs/ as HTML, into target/book.
docs:
	@scripts/docs

clean:
	$(CARGO) clean
