//! What must hold of code that reads strangers' bytes, for a fuzzer to break: `fuzz/` feeds these,
//! and the tests here replay what it has found.
//!
//! Each function takes any bytes and panics if something does not hold. They exist under the fuzzer
//! and in tests only.

use crate::page::Form;

/// A form that is kept comes back unchanged.
pub fn form(bytes: &[u8]) {
    let Some(form) = Form::parse(bytes) else { return };
    let again = form_urlencoded::Serializer::new(String::new()).extend_pairs(&form.fields).finish();
    assert_eq!(Form::parse(again.as_bytes()).map(|again| again.fields), Some(form.fields));
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_testing::corpus;

    #[test]
    fn what_a_fuzzer_has_found_still_holds() {
        type Check = fn(&[u8]);
        let targets: [(&str, Check); 1] = [("form", form)];
        for (name, check) in targets {
            corpus(name).iter().for_each(|bytes| check(bytes));
        }
    }
}
