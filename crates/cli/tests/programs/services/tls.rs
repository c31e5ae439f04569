//! One certificate for one name, on every replica.

use std::process::Command;

use super::*;

#[test]
fn all_replicas_have_the_names_certificate_and_a_connection_stays_while_they_come_and_go() {
    if is_missing(&["openssl"]) {
        return;
    }
    for lab in labs() {
        let words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=www \
                     -addext subjectAltName=DNS:www -keyout key.pem -out certificate.pem";
        let mut openssl = Command::new("openssl");
        let made = openssl.args(words.split_whitespace()).current_dir(lab.path()).output().unwrap();
        good(&made);
        lab.own(&lab.path().join("key.pem"));
        lab.own(&lab.path().join("certificate.pem"));
        let text = file(
            "ports: 443/tcp",
            "tls 0.0.0.0 443 certificate.pem key.pem",
            "tls www 443 certificate.pem",
        );
        let mut live = lab.start(&text);
        wait_for_replicas(&mut live);
        let mut known = wait_for_line(&live, 0, "stays s1");
        for _ in 0..3 {
            good(&live.ask_service(&["drain", "www", "s1"]));
            known = wait_for_line(&live, known, "new s2");
            good(&live.ask_service(&["remove", "www", "s2"]));
            known = wait_for_line(&live, known, "new s3");
            good(&live.ask_service(&["add", "www", "s2"]));
            good(&live.ask_service(&["drain", "www", "s1", "--undo"]));
            known = wait_for_line(&live, known, "new s1");
        }
        let outcome = stop(live);
        outcome.assert_code(0);
        let output = outcome.output("c");
        let staying = || output.lines().filter(|line| line.starts_with("stays "));
        assert!(
            staying().count() > 9 && staying().all(|line| line.starts_with("stays s1")),
            "{output}"
        );
        assert!(!output.contains("Error"), "{output}");
    }
}
