//! The laws, tried on some hundred books.

use std::collections::BTreeMap;

use callbook_domain::key::Key;
use callbook_ranking::{Entry, Index};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::laws::{
    an_answer_is_sound, answers_are_equal, entry, filters, question, recommendations, text, wild, written,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_allowed_ordered_and_pages_into_each_row_once(
        entries in vec(entry(text), 0..30), recommended in recommendations(), filters in filters(),
        text in question(), abstain in any::<bool>(), page in 1_usize..7,
    ) {
        let rows: BTreeMap<Key, Entry> = entries.iter().map(|e| (e.key.clone(), e.clone())).collect();
        let mut index = Index::build(entries);
        index.set_recommended(recommended);
        an_answer_is_sound(&index, &rows, &text, &filters, (abstain, page))?;
    }

    #[test]
    fn rows_written_one_by_one_answer_like_a_fresh_build(
        writes in vec((entry(text), any::<bool>()), 0..40), texts in vec(question(), 1..6),
    ) {
        let (index, rows) = written(writes)?;
        let fresh = Index::build(rows.into_values());
        prop_assert_eq!(index.len(), fresh.len());
        for text in texts {
            answers_are_equal(&index, &fresh, &text)?;
        }
    }

    #[test]
    fn any_text_is_safe_in_every_field(entry in entry(wild), recommended in recommendations(), text in wild()) {
        let rows = BTreeMap::from([(entry.key.clone(), entry.clone())]);
        let mut index = Index::build([entry.clone()]);
        index.set_recommended(recommended);
        for text in [&text, &entry.what] {
            an_answer_is_sound(&index, &rows, text, &Default::default(), (true, 3))?;
        }
    }
}
