//! Keys that a person takes for one another.

use unicode_security::confusable_detection::skeleton as uts39;

/// The look-alike form of a key: two keys with the same UTS-39 skeleton (`N0W`/`NOW`, `I`/`l`/`1`), or the same in
/// upper case (`now`/`NOW`), have one form.
///
/// The form is skeleton, upper case, skeleton, lower case, skeleton, in this order. Because the skeleton comes first,
/// keys of one skeleton go on as one text. The rest makes the two cases of every letter meet: `i` is like `l` only as
/// `I`, so one skeleton follows upper case; `M` is like `rn` only as `m`, so one follows lower case. Each step works
/// letter by letter, so what holds for every letter of the alphabet of keys (the test goes through it) holds for keys.
pub fn skeleton(key: &str) -> String {
    let upper = once(key).to_uppercase();
    let lower = once(&upper).to_lowercase();
    once(&lower)
}

fn once(text: &str) -> String {
    uts39(text).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_that_read_alike_have_one_form() {
        for (a, b) in
            [("N0W", "NOW"), ("now", "NOW"), ("now", "N0w"), ("I", "l"), ("1", "l"), ("i", "1"), ("rnail", "MA1L")]
        {
            assert_eq!(skeleton(a), skeleton(b), "{a} {b}");
        }
        for (a, b) in [("NOW", "NOV"), ("A_B", "A-B"), ("A.B", "AB"), ("TASK_1", "TASK_2"), ("GET_S", "GET_5")] {
            assert_ne!(skeleton(a), skeleton(b), "{a} {b}");
        }
    }

    #[test]
    fn both_cases_and_the_skeleton_of_every_letter_have_one_form() {
        for letter in (b'!'..=b'~').map(char::from) {
            let form = skeleton(&letter.to_string());
            assert_eq!(skeleton(&letter.to_ascii_uppercase().to_string()), form, "{letter}");
            assert_eq!(skeleton(&once(&letter.to_string())), form, "{letter}");
            assert_eq!(skeleton(&form), form, "{letter}");
        }
    }

    proptest! {
        #[test]
        fn both_relations_hold_for_keys(key in "[A-Za-z_][A-Za-z0-9_.-]{0,20}", other in "[Il1mMrRnN0oO]{1,4}") {
            prop_assert_eq!(skeleton(&key), skeleton(&key.to_uppercase()));
            prop_assert_eq!(skeleton(&key), skeleton(&key.to_lowercase()));
            prop_assert_eq!(skeleton(&key), skeleton(&once(&key)));
            prop_assert_eq!(skeleton(&format!("{key}{other}")), skeleton(&key) + &skeleton(&other));
        }
    }
}
