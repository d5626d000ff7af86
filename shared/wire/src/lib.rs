//! The generated code of `proto/`: messages, clients and servers, one module a package, and the descriptors of all for
//! reflection. No rule and no conversion lives here.

/// The encoded `FileDescriptorSet` of every package, imports and comments included.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptor.bin"));

macro_rules! packages {
    ($($(#[$doc:meta])* $name:ident = $package:tt;)*) => {$(
        $(#[$doc])*
        pub mod $name {
            /// Version 1.
            #[allow(missing_docs, unreachable_pub, clippy::all, rustdoc::all)]
            pub mod v1 {
                tonic::include_proto!($package);
            }
        }
    )*};
}

packages! {
    /// The row, and writing and reading the book.
    directory = "callbook.directory.v1";
    /// A row as a contract, and recommendations.
    contract = "callbook.contract.v1";
    /// From a question to the rows that fit.
    resolver = "callbook.resolver.v1";
    /// Principals.
    gate = "callbook.gate.v1";
    /// Running rows.
    executor = "callbook.executor.v1";
    /// What happened.
    receipt = "callbook.receipt.v1";
    /// The dictionary of refusals.
    errors = "callbook.errors.v1";
}
