use callbook_domain::caller::May;
use secrecy::ExposeSecret;

use super::file::SettingsFile;
use super::*;

fn load(overrides: Overrides, file: &str) -> Result<Settings, String> {
    let file = SettingsFile::parse(file)?;
    Settings::from_parts(overrides, file).map_err(|error| error.to_string())
}

fn refusal(file: &str) -> String {
    load(Overrides::default(), file).unwrap_err()
}

#[test]
fn without_a_word_everything_has_its_default() {
    let settings = load(Overrides::default(), "").unwrap();
    assert_eq!(settings.http.to_string(), "127.0.0.1:7700");
    assert_eq!(settings.grpc.to_string(), "127.0.0.1:7701");
    assert_eq!(settings.admin.to_string(), "127.0.0.1:7702");
    assert_eq!(settings.pools, ["default"]);
    assert_eq!(settings.catalogue, Catalogue::Public);
    assert_eq!(settings.retention_days.unwrap().get(), 30);
    assert_eq!(settings.limits.anonymous_per_second.unwrap().get(), 1000);
    assert_eq!(settings.limits.principal_per_second.unwrap().get(), 5000);
    assert_eq!(settings.limits.request_bytes.unwrap().get(), 1 << 20);
    assert!(!settings.read_mode && !settings.js);
    assert!(settings.peers.executors.is_empty());
    assert!(settings.owner_key.is_none() && settings.issuer_key.is_none());
    assert_eq!((settings.audience.as_str(), settings.token_issuer.as_str()), ("callbook", "callbook"));
    assert_eq!(settings.token_max.as_secs(), 7 * 24 * 60 * 60);
    assert_eq!(settings.timezone.iana_name(), Some("UTC"));
}

#[test]
fn a_flag_wins_over_the_file_and_an_empty_flag_does_not() {
    let set = Overrides {
        http: Some("0.0.0.0:80".to_owned()),
        grpc: Some(String::new()),
        pools: Some("gpu, default".to_owned()),
        allow_origins: Some("http://127.0.0.1:9000,https://A.example:443/".to_owned()),
        ..Overrides::default()
    };
    let file = "http = \"127.0.0.1:1\"\ngrpc = \"127.0.0.1:2\"\npools = [\"x\"]\nallow_origins = [\"http://b\"]";
    let settings = load(set, file).unwrap();
    assert_eq!(settings.http.to_string(), "0.0.0.0:80");
    assert_eq!(settings.grpc.to_string(), "127.0.0.1:2");
    assert_eq!(settings.pools, ["gpu", "default"]);
    assert_eq!(settings.allow_origins, ["http://127.0.0.1:9000", "https://a.example"]);
    assert_eq!(settings.catalogue, Catalogue::Private, "the gateway is not on loopback");
}

#[test]
fn zero_turns_a_limit_off() {
    let settings = load(Overrides::default(), "retention_days = 0\n[limits]\nconcurrency = 0\nurl_bytes = 0").unwrap();
    assert_eq!((settings.limits.concurrency, settings.limits.url_bytes, settings.retention_days), (None, None, None));
    assert!(refusal("[limits]\ndatabase_connections = 0").contains("`limits.database_connections`"));
}

#[test]
fn a_wrong_setting_is_one_sentence_that_names_it() {
    for (file, name) in [
        ("http = \"localhost\"", "`http`"),
        ("http = \"::1:80\"", "`http`"),
        ("http = \"a b:80\"", "`http`"),
        ("catalogue = \"open\"", "`catalogue`"),
        ("timezone = \"Mars/Base\"", "`timezone`"),
        ("audience = \"a b\"", "`audience`"),
        ("token_issuer = \" \"", "`token_issuer`"),
        ("token_max_seconds = 59", "`token_max_seconds`"),
        ("token_max_seconds = 604801", "`token_max_seconds`"),
        ("pools = [\"a=b\"]", "`pools`"),
        ("allow_origins = [\"http://a/path\"]", "`allow_origins`"),
        ("database_url = \"mysql://a\"", "`database_url`"),
        ("[executors]\n\"a b\" = [\"x:1\"]", "`executors`"),
        ("[tls]\ncert = \"/nonexistent\"", "`tls.cert`"),
        ("[secrets.X]\norigins = []", "`secrets.X.origins`"),
        ("[secrets.CALLBOOK_OWNER_KEY]\norigins = [\"https://a\"]", "`secrets.CALLBOOK_OWNER_KEY`"),
        ("[providers.p]\nbase_url = \"https://a\"\nform = \"x\"", "`providers.p.form`"),
        ("[providers.p]\nbase_url = \"https://a\"\nform = \"openai-chat\"\nsecret = \"K\"", "`providers.p.secret`"),
        ("[providers.p]\nbase_url = \"https://a\"\nform = \"openai-chat\"\ncalls = \"x\"", "`providers.p.calls`"),
        ("[exec]\nprograms = [\"ls\"]\nuser = \"nobody\"", "`exec.programs`"),
        ("[issuers.i]\nissuer = \"x\"\njwks_url = \"http://a\"", "`issuers.i.jwks_url`"),
    ] {
        let sentence = refusal(file);
        assert!(sentence.contains(name) && !sentence.contains('\n'), "{file}: {sentence}");
    }
}

#[test]
fn a_misspelt_setting_is_refused_with_its_line() {
    assert!(refusal("http = \"a:1\"\nhtpp = \"a:1\"").starts_with("line 2, `htpp`: unknown field `htpp`"));
}

#[test]
fn what_is_wrong_never_repeats_a_value_that_may_be_secret() {
    assert_eq!(refusal("database_url = 77423"), "line 1, `database_url`: expected a string");
    assert!(!refusal("database_url = \"mysql://u:hunter2@h\"").contains("hunter2"));
    assert!(!refusal("allow_origins = [\"https://u:hunter2@h/p\"]").contains("hunter2"));
    let settings = load(Overrides::default(), "database_url = \"postgres://u:hunter2@h/db\"").unwrap();
    assert!(!format!("{settings:?}").contains("hunter2"));
}

#[test]
fn a_short_key_is_refused_and_a_long_one_kept() {
    let set = |key: &str| Overrides { owner_key: Some(key.to_owned()), ..Overrides::default() };
    assert!(load(set("123456789012345"), "").unwrap_err().contains("`owner_key`"));
    let settings = load(set("1234567890123456"), "").unwrap();
    assert_eq!(settings.owner_key.unwrap().expose_secret(), "1234567890123456");
}

#[test]
fn peers_keep_their_pools_and_take_tls_from_the_setting() {
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    std::fs::write(&ca, "x").unwrap();
    let set = Overrides {
        resolver: Some("resolver:7701, http://127.0.0.1:1".to_owned()),
        executors: Some("default=a:1,gpu=[::1]:2,gpu=https://c:3".to_owned()),
        tls_ca: Some(ca),
        ..Overrides::default()
    };
    let peers = load(set, "").unwrap().peers;
    let uris: Vec<_> = peers.resolver.iter().map(ServiceAddress::uri).collect();
    assert_eq!(uris, ["https://resolver:7701", "http://127.0.0.1:1"]);
    let executors: Vec<_> = peers.executors.iter().map(|(pool, at)| format!("{pool} {}", at.uri())).collect();
    assert_eq!(executors, ["default https://a:1", "gpu https://[::1]:2", "gpu https://c:3"]);
    let in_file = load(Overrides::default(), "[executors]\ngpu = [\"a:1\", \"b:1\"]").unwrap().peers;
    assert_eq!(in_file.executors.len(), 2);
}

#[test]
fn a_secret_takes_the_origins_of_the_variable_and_keeps_the_rest() {
    let set = Overrides {
        secret_origins: Some("XAI=https://api.x.ai/,XAI=https://b.x.ai,NEW=http://127.0.0.1:9".to_owned()),
        ..Overrides::default()
    };
    let file = "[secrets.XAI]\norigins = [\"https://old\"]\nkeys = [\"xai.\"]\nvalue_file = \"/run/xai\"";
    let settings = load(set, file).unwrap();
    let secrets = &settings.secrets.0;
    assert_eq!(secrets["XAI"].origins, ["https://api.x.ai", "https://b.x.ai"]);
    assert_eq!(secrets["XAI"].keys, ["xai."]);
    assert_eq!(settings.secret_files["XAI"], std::path::Path::new("/run/xai"));
    assert_eq!(secrets["NEW"].origins, ["http://127.0.0.1:9"]);
}

#[test]
fn everything_else_is_read_from_the_file() {
    let file = r#"
        [secrets.XAI_KEY]
        origins = ["https://api.x.ai"]
        [providers.xai]
        base_url = "https://api.x.ai/v1"
        form = "openai-chat"
        secret = "XAI_KEY"
        models = ["grok*"]
        prices."grok-5" = { input = 3.0, output = 15 }
        [databases.reports]
        url = "postgres://u:p@h/reports"
        max_rows = 5
        [exec]
        programs = ["/usr/bin/jq"]
        user = "nobody"
        [issuers.corp]
        issuer = "https://id.example"
        jwks_url = "https://id.example/jwks"
        scopes."callbook:run" = [{ may = "invoke", prefix = "billing." }]
        [public]
        site = "Zürich"
    "#;
    let settings = load(Overrides::default(), file).unwrap();
    assert_eq!(settings.providers["xai"].prices["grok-5"], Price { input: 3.0, output: 15.0 });
    assert_eq!(settings.databases["reports"].max_rows, 5);
    assert_eq!(settings.exec.unwrap().timeout.as_secs(), 30);
    assert_eq!(settings.issuers["corp"].scopes["callbook:run"][0].may, May::Invoke);
    assert_eq!(settings.public["site"], "Zürich");
}

#[test]
fn a_named_file_must_exist_and_the_one_in_the_data_directory_need_not() {
    let dir = tempfile::tempdir().unwrap();
    let set = Overrides { data_dir: Some(dir.path().to_owned()), ..Overrides::default() };
    assert_eq!(Settings::load(set.clone()).unwrap().http.port, 7700);
    std::fs::write(dir.path().join("callbook.toml"), "http = \"127.0.0.1:9\"").unwrap();
    assert_eq!(Settings::load(set.clone()).unwrap().http.port, 9);
    let other = dir.path().join("other.toml");
    let named = Overrides { config: Some(other.clone()), ..set };
    assert!(Settings::load(named.clone()).unwrap_err().to_string().contains("other.toml"));
    std::fs::write(&other, "").unwrap();
    assert_eq!(Settings::load(named).unwrap().http.port, 7700);
}
