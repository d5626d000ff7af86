//! The command line.

mod command;

use std::process::ExitCode;

use clap::Parser;

/// A call makes a few hundred allocations, some of them of many kilobytes; the C library's allocator takes a tenth more of
/// the processor for it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // rustls wants to know which implementation of its primitives to use, once, before anybody asks
    let _ = rustls::crypto::ring::default_provider().install_default();
    match command::run(command::Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("callbook: {error:#}");
            ExitCode::FAILURE
        }
    }
}
