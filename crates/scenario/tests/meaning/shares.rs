//! Programs that share the link of their node.

use windtunnel_model::Rate;
use windtunnel_model::profile::{QueueDiscipline, SendShare};

use super::plan;

#[test]
fn the_link_of_a_node_has_a_class_for_each_program_once_one_of_them_has_a_share() {
    let plan = plan(
        "nodes:\n  box:\n    count: 2\n    run:\n      - {run: /bin/sh -c a, send: {min: 200kbit, weight: 3}}\n      \
         - {run: sh -c b}\n      - {run: crawl, send: {min: 1kbit}}\nrouters: [isp]\nlinks: [{between: [box, isp], rate: 1mbit}]",
    );
    let class = |name: &str, min: Option<u64>, weight| SendShare {
        name: name.to_owned(),
        min: min.and_then(Rate::from_bits_per_second),
        weight,
    };
    for link in &plan.links {
        let QueueDiscipline::Wf2q(shares) = &link.profiles[0].discipline else {
            panic!("{:?}", link.profiles[0].discipline);
        };
        let expected =
            [class("sh", Some(200_000), 3), class("sh-2", None, 1), class("crawl", Some(1000), 1)];
        assert_eq!(shares.classes, expected);
        assert_eq!(link.profiles[1].discipline, QueueDiscipline::DropTail, "the way back");
    }
}

#[test]
fn a_rate_that_only_the_node_bounds_can_be_shared() {
    let plan = plan(
        "nodes: {box: {send: 1mbit, run: [{run: a, send: {min: 1mbit}}]}, isp: {}}\nlinks: [{between: [isp, box]}]",
    );
    assert!(matches!(&plan.links[0].profiles[1].discipline, QueueDiscipline::Wf2q(_)));
}
