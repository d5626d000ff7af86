//! The command line.

mod command;

use std::process::ExitCode;

use clap::Parser;

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
