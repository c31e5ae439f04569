//! Names of links, of nodes and of directions.

use crate::grammar::{Decoder, Name, NameListForm, YamlMapEntry, form};
use crate::position::LocatedValue;

form! {
    /// Names of links.
    pub(super) LinkNames: Vec<LocatedValue<String>>, by read_link_names, like NameListForm::schema
}

fn read_link_names(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<Vec<LocatedValue<String>>> {
    from.names(field, "a link's name or a list of them")
}

form! {
    /// Names of nodes and groups.
    pub(super) NodeNames: Vec<LocatedValue<String>>, by read_node_names, like NameListForm::schema
}

fn read_node_names(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<Vec<LocatedValue<String>>> {
    from.names(field, "a node's name or a list of them")
}

form! {
    /// `up`, `down` or `a-b`.
    pub(super) DirectionName: LocatedValue<String>, by read_direction_name, like Name::schema
}

fn read_direction_name(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<LocatedValue<String>> {
    from.text_at(field, "`up`, `down` or the two ends as `from-to`")
}
