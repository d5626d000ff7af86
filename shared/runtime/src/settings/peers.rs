//! The other roles: where they are and how connections between services are protected.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::address::ServiceAddress;
use super::error::SettingsError;
use super::file::TlsTable;
use super::pick::{list, path, pool_name, split};

/// Where the other roles are. An empty list: in this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peers {
    /// The resolvers.
    pub resolver: Vec<ServiceAddress>,
    /// The contract services.
    pub contract: Vec<ServiceAddress>,
    /// The gates.
    pub gate: Vec<ServiceAddress>,
    /// The executors with the pool that each serves; a pool may stand several times.
    pub executors: Vec<(String, ServiceAddress)>,
    /// TLS between services. Absent: plain text.
    pub tls: Option<Tls>,
}

/// TLS between services, as PEM files. The files were readable when the settings were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Certificate chain and private key that this process shows; absent where it only calls.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The authority that signed the others' certificates; absent: the system's.
    pub ca: Option<PathBuf>,
}

/// resolver, contract, gate, executors as the environment has them
type Set = (Option<String>, Option<String>, Option<String>, Option<String>);
/// resolver, contract, gate, executors as the file has them
type Written = (Option<Vec<String>>, Option<Vec<String>>, Option<Vec<String>>, Option<BTreeMap<String, Vec<String>>>);

pub(super) fn peers(set: Set, file: Written, tls: Option<Tls>) -> Result<Peers, SettingsError> {
    let encrypted = tls.is_some();
    let addresses = |name: &str, list: Vec<String>| -> Result<Vec<ServiceAddress>, SettingsError> {
        list.iter().map(|text| ServiceAddress::parse(name, text, encrypted)).collect()
    };
    Ok(Peers {
        resolver: addresses("resolver", list(set.0, file.0))?,
        contract: addresses("contract", list(set.1, file.1))?,
        gate: addresses("gate", list(set.2, file.2))?,
        executors: executors(set.3, file.3, encrypted)?,
        tls,
    })
}

fn executors(
    set: Option<String>,
    file: Option<BTreeMap<String, Vec<String>>>,
    encrypted: bool,
) -> Result<Vec<(String, ServiceAddress)>, SettingsError> {
    let pairs = match set.map(|text| split(&text)).filter(|list| !list.is_empty()) {
        Some(list) => list.iter().map(|text| pair(text)).collect::<Result<Vec<_>, _>>()?,
        None => file.unwrap_or_default().into_iter().flat_map(spread).collect(),
    };
    let checked = pairs.into_iter().map(|(pool, text)| {
        pool_name("executors", &pool)?;
        Ok((pool, ServiceAddress::parse("executors", &text, encrypted)?))
    });
    checked.collect()
}

fn pair(text: &str) -> Result<(String, String), SettingsError> {
    let (pool, address) = text
        .split_once('=')
        .ok_or_else(|| SettingsError::refused("executors", format!("`{text}` is not pool=host:port")))?;
    Ok((pool.trim().to_owned(), address.to_owned()))
}

fn spread((pool, addresses): (String, Vec<String>)) -> impl Iterator<Item = (String, String)> {
    addresses.into_iter().map(move |address| (pool.clone(), address))
}

/// cert, key, ca as the environment has them
type TlsSet = (Option<PathBuf>, Option<PathBuf>, Option<PathBuf>);

pub(super) fn tls(set: TlsSet, file: TlsTable) -> Result<Option<Tls>, SettingsError> {
    let cert = readable("tls.cert", path(set.0, file.cert))?;
    let key = readable("tls.key", path(set.1, file.key))?;
    let ca = readable("tls.ca", path(set.2, file.ca))?;
    let identity = match (cert, key) {
        (Some(cert), Some(key)) => Some((cert, key)),
        (None, None) => None,
        (Some(_), None) => return Err(SettingsError::refused("tls.key", "must be set where `tls.cert` is")),
        (None, Some(_)) => return Err(SettingsError::refused("tls.cert", "must be set where `tls.key` is")),
    };
    Ok((identity.is_some() || ca.is_some()).then_some(Tls { identity, ca }))
}

fn readable(name: &str, path: Option<PathBuf>) -> Result<Option<PathBuf>, SettingsError> {
    let Some(path) = path else { return Ok(None) };
    match std::fs::File::open(&path) {
        Ok(_) => Ok(Some(path)),
        Err(error) => Err(SettingsError::refused(name, format!("{} cannot be read ({error})", path.display()))),
    }
}
