//! Which statements a handler may not send: those that end the transaction it writes in.

/// What a statement begins with that would begin, end or divide a transaction, or take away what
/// the connection has prepared.
const REFUSED: [&str; 10] = [
    "ABORT",
    "BEGIN",
    "COMMIT",
    "DEALLOCATE",
    "DISCARD",
    "END",
    "RELEASE",
    "ROLLBACK",
    "SAVEPOINT",
    "START",
];

/// The word by which a statement would end the transaction, if it would.
///
/// The server takes one statement at a time from a handler (the extended protocol), so the first
/// word is enough. What a function or a `DO` block tries, the server itself refuses inside of a
/// transaction.
pub(super) fn refused_word(statement: &str) -> Option<&'static str> {
    let is = |word: &str, other: &str| word.eq_ignore_ascii_case(other);
    let (word, rest) = first_word(skip_blank(statement));
    let (next, _) = first_word(skip_blank(rest));
    // `PREPARE name AS` is harmless.
    if is(word, "PREPARE") && is(next, "TRANSACTION") {
        return Some("PREPARE TRANSACTION");
    }
    REFUSED.into_iter().find(|refused| is(word, refused))
}

/// A word as the server reads it, and what comes behind.
fn first_word(text: &str) -> (&str, &str) {
    let goes_on = |c: char| c.is_ascii_alphanumeric() || "_$".contains(c) || !c.is_ascii();
    text.split_at(text.find(|c| !goes_on(c)).unwrap_or(text.len()))
}

/// What comes behind blanks, comments and empty statements.
fn skip_blank(statement: &str) -> &str {
    let mut rest = statement;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c', ';']);
        if rest.starts_with("--") {
            let end = rest.find(['\n', '\r']);
            rest = end.map_or("", |end| &rest[end..]);
        } else if rest.starts_with("/*") {
            rest = behind_comment(rest);
        } else {
            return rest;
        }
    }
}

/// Comments of this kind may lie in one another.
fn behind_comment(text: &str) -> &str {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(two) = text.as_bytes().get(at..at + 2) {
        match two {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return text.get(at..).unwrap_or_default();
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_transaction_is_found_behind_whatever_hides_it() {
        let refused = [
            "COMMIT",
            "commit;",
            " \t\r\n\x0b\x0cEnd",
            ";; ; ROLLBACK TO SAVEPOINT x",
            "-- a word\nABORT",
            "-- a word\rABORT",
            "/* a /* b */ COMMIT */ begin",
            "/**/START TRANSACTION",
            "savepoint x",
            "RELEASE x",
            "prepare /* */ transaction 'x'",
            "DISCARD ALL",
            "DEALLOCATE ALL",
        ];
        for statement in refused {
            assert!(refused_word(statement).is_some(), "{statement:?}");
        }
    }

    #[test]
    fn what_only_looks_like_it_is_let_through() {
        let allowed = [
            "",
            "--",
            "/*",
            "/* COMMIT */ SELECT 1",
            "-- COMMIT",
            "INSERT INTO commits VALUES (1)",
            "UPDATE orders SET status = 'COMMIT'",
            "commitment",
            "end_of_month()",
            "end2 x",
            "PREPARE transaction_of_mine AS SELECT 1",
            "\u{e9}COMMIT",
            "WITH x AS (SELECT 1) SELECT * FROM x",
        ];
        for statement in allowed {
            assert_eq!(refused_word(statement), None, "{statement:?}");
        }
    }
}
