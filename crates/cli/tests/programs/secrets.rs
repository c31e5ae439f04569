//! Keys of the user that no program of a run may read.

use std::fs;

use super::support::{Lab, users};

#[test]
fn no_program_reads_the_key_that_the_command_line_names() {
    for user in users() {
        let lab = Lab::new(user);
        let made = lab.windtunnel(&["keygen", "cluster key"]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let key = fs::read_to_string(lab.path().join("cluster key")).unwrap();
        assert!(key.contains("PRIVATE KEY"));
        lab.command(&["ln", "-s", "cluster key", "link"]).status().unwrap();
        let nodes = "nodes:
  a: {run: [sh, -c, 'cat \"cluster key\" link; echo end']}
  b:
    run: [sh, -c, 'umount -n -l \"cluster key\"; cat \"cluster key\" link; echo end']
    user: root
links: [{between: [a, b]}]
";
        for name in ["cluster key", "link"] {
            let outcome = lab.run_with(nodes, &["--key", name]);
            outcome.assert_code(0);
            for node in ["a", "b"] {
                assert_eq!(outcome.output(node), "end\n", "in {node}, with --key {name:?}");
            }
        }
        // No option names it as a key.
        let outcome = lab.pass(nodes);
        assert_eq!(outcome.output("a"), format!("{key}{key}end\n"));
        assert_eq!(fs::read_to_string(lab.path().join("cluster key")).unwrap(), key);
    }
}

#[test]
fn no_program_reads_the_key_where_it_is_usually_kept() {
    for user in users() {
        let lab = Lab::new(user);
        let made = lab.windtunnel(&["keygen"]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let folder = lab.path().join(".config/windtunnel");
        assert!(fs::read_to_string(folder.join("cluster.key")).unwrap().contains("PRIVATE KEY"));
        let look = "ls -A $HOME/.config/windtunnel; cat $HOME/.config/windtunnel/cluster.key";
        let outcome = lab.run(&format!(
            "nodes: {{a: {{run: [sh, -c, '{look}']}}, b: {{run: [sh, -c, '{look}'], user: root}}}}
links: [{{between: [a, b]}}]
expect: [{{node: a, exit: any}}, {{node: b, exit: any}}]
"
        ));
        outcome.assert_code(0);
        for node in ["a", "b"] {
            assert_eq!(outcome.output(node), "", "in {node}");
            assert_ne!(outcome.program(node)["exit"], 0, "in {node}");
        }
    }
}
