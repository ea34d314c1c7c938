//! Which settings must not be shown.

/// In what a name says of a secret, in librdkafka's settings and in those of the Java client.
const PARTS: [&str; 7] = [
    "password",
    "passphrase",
    "passwd",
    "secret",
    "private.key",
    "key.pem",
    "jaas",
];

/// Names that say nothing of it.
const WHOLE: [&str; 2] = ["ssl_key", "sasl.oauthbearer.config"];

/// Names with such a part that hold a path.
const PLAIN: [&str; 1] = ["sasl.oauthbearer.assertion.private.key.file"];

/// Whether the value of a setting may be a password or a private key, by the setting's name in any
/// spelling. This crate's errors and log lines show no such value; of a setting that librdkafka does
/// not know they show none at all, since under a mistyped name anything may stand.
///
/// ```
/// use idempotent_consumer::audit::is_secret;
///
/// assert!(is_secret("sasl.password") && is_secret("ssl.key.pem"));
/// assert!(!is_secret("sasl.username") && !is_secret("ssl.key.location"));
/// ```
#[must_use]
pub fn is_secret(setting: &str) -> bool {
    // As it may be spelt where names hold no dots.
    let name = setting.to_ascii_lowercase().replace(['_', '-'], ".");
    let is = |other: &&str| other.replace('_', ".") == name;
    !PLAIN.iter().any(is) && (WHOLE.iter().any(is) || PARTS.iter().any(|part| name.contains(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "sasl.password",
            "ssl.key.password",
            "ssl.keystore.password",
            "SASL.PASSWORD",
            "SASL_PASSWORD",
            "sasl.oauthbearer.client.secret",
            "sasl.oauthbearer.client.credentials.client.secret",
            "sasl.oauthbearer.assertion.private.key.pem",
            "sasl.oauthbearer.assertion.private.key.passphrase",
            "sasl.oauthbearer.config",
            "sasl.jaas.config",
            "ssl.key.pem",
            "ssl_key",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "sasl.username",
            "ssl.ca.location",
            "ssl.key.location",
            "ssl.certificate.pem",
            "sasl.oauthbearer.assertion.private.key.file",
            "client.id",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
