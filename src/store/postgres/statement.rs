//! Which statements a handler may not send: those that end the transaction it writes in, or change
//! the connection beyond it.

/// What a statement begins with that would begin, end or divide a transaction, take away what the
/// connection has prepared or set, or leave it in another mode.
const REFUSED: [&str; 12] = [
    "ABORT",
    "BEGIN",
    "COMMIT",
    "COPY",
    "DEALLOCATE",
    "DISCARD",
    "END",
    "RELEASE",
    "RESET",
    "ROLLBACK",
    "SAVEPOINT",
    "START",
];

/// The word for which a statement is refused, if it is.
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
    if is(word, "SET") {
        return refused_setting(rest);
    }
    REFUSED.into_iter().find(|refused| is(word, refused))
}

/// What is set beyond the transaction, or changes who the store's own statements are sent by.
fn refused_setting(behind_set: &str) -> Option<&'static str> {
    let is = |word: &str, other: &str| word.eq_ignore_ascii_case(other);
    let (word, rest) = first_word(skip_blank(behind_set));
    if is(word, "CONSTRAINTS") || is(word, "TRANSACTION") {
        return None;
    }
    if !is(word, "LOCAL") {
        return Some("SET without LOCAL");
    }
    let (what, rest) = first_word(skip_blank(rest));
    let (more, _) = first_word(skip_blank(rest));
    if is(what, "ROLE") {
        return Some("SET ROLE");
    }
    let session = is(what, "SESSION") && is(more, "AUTHORIZATION");
    (session || is(what, "session_authorization")).then_some("SET SESSION AUTHORIZATION")
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
            "COPY t FROM STDIN",
            "reset all",
            "SET search_path = x",
            "set /* */ session characteristics as transaction read only",
            "SET ROLE x",
            "SET LOCAL role = x",
            "SET LOCAL SESSION AUTHORIZATION x",
            "SET SESSION AUTHORIZATION x",
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
            "SET LOCAL lock_timeout = '1s'",
            "set constraints all immediate",
            "SET TRANSACTION READ ONLY",
            "settle()",
            "WITH copy AS (SELECT 1) SELECT * FROM copy",
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
