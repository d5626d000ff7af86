# `make up` runs the product, `make test` proves it. Both install what they need where they can.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
export CARGO_TERM_COLOR ?= auto

.PHONY: up test conformance build postgres lint buf fmt sqlx bench clean

## Run every role on a private Postgres, ready on http://127.0.0.1:7700
up: postgres
	cargo run --quiet --package callbook -- up

## Everything that must hold
test: postgres
	SQLX_OFFLINE=true cargo build --workspace --all-targets --features callbook/test-clock
	SQLX_OFFLINE=true ./target/debug/callbook dev-db -- cargo test --workspace --no-fail-fast --features callbook/test-clock

## Programs of others judge the MCP surface; installs them from npm and PyPI under target/
conformance: postgres
	SQLX_OFFLINE=true cargo build --workspace --all-targets --features callbook/test-clock
	tests/conformance/run

## The programs of Postgres, where a package manager can bring them
postgres:
	@scripts/postgres

## Format, lints, protobuf
lint: buf
	cargo fmt --all --check
	SQLX_OFFLINE=true cargo clippy --workspace --all-targets --features callbook/test-clock -- --deny warnings

buf:
	@scripts/buf lint proto

fmt:
	cargo fmt --all

## The offline data of checked queries, after a change of SQL or of the schema
sqlx: postgres
	scripts/sqlx

## Figures on a release build
bench: postgres
	scripts/bench

clean:
	cargo clean
