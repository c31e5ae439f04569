//! Users that programs run as.

use serde_json::Value as Json;
use windtunnel_model::plan::{NodeFilesystem, ProgramUser};

use crate::grammar::{
    Decoder, SchemaAlternative, SchemaDefinitions, ValueForm, YamlMapEntry, words,
};

words! {
    /// The user that programs of all nodes run as.
    CommonAccount: ProgramUser {
        /// The user that runs windtunnel.
        "invoker" => ProgramUser::Invoker,
        /// Root of the node.
        "root" => ProgramUser::Root,
    }
}

words! {
    /// A user that each node with an image has.
    CommonUser as "User"; ProgramUser {
        /// The user that runs windtunnel.
        "invoker" => ProgramUser::Invoker,
        /// Root of the node.
        "root" => ProgramUser::Root,
        /// The user that the node's image names, or root of the node if it names none.
        "image" => ProgramUser::Image,
    }
}

/// Who programs are.
#[derive(Debug, Clone)]
pub(crate) enum AccountDraft {
    /// One that has a word.
    User(ProgramUser),
    /// A user of the node's own files.
    Written(String),
}

/// The user that programs run as.
pub(super) struct AccountForm;

impl ValueForm for AccountForm {
    type Value = AccountDraft;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<AccountDraft> {
        let known = |text: &str| CommonUser::WORDS.iter().any(|(word, _)| *word == text);
        match field.scalar() {
            Some(text) if !known(text) && NodeFilesystem::is_account(text) => {
                Some(AccountDraft::Written(text.to_owned()))
            }
            _ => CommonUser::read(from, field).map(AccountDraft::User),
        }
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let written = |definitions: &mut SchemaDefinitions| {
            let description = "A user of the node's own files, and perhaps a group.";
            let pattern = "^[A-Za-z0-9_.$@-]+(:[A-Za-z0-9_.$@-]+)?$";
            definitions.text("FileUser", description, pattern, "1000:1000")
        };
        definitions.any_of(
            "Account",
            "The user that programs run as.",
            &[
                SchemaAlternative("One that each node has.", CommonUser::schema),
                SchemaAlternative("One of its files.", written),
            ],
        )
    }
}
