use std::sync::Arc;
struct P;
impl windtunnel_host::Observer for P {
    fn notice(&self, n: &windtunnel_host::Notice<'_>) {
        eprintln!("{n:?}");
    }
}
fn main() {
    let f = std::env::args().nth(1).unwrap();
    let text = std::fs::read(&f).unwrap();
    let l = windtunnel_scenario::load(&windtunnel_scenario::Source {
        name: &f,
        text: &text,
        default_name: "t",
        base_dir: "/tmp",
    });
    let l = match l {
        Ok(l) => l,
        Err(e) => {
            eprintln!("{e}");
            return;
        }
    };
    let o = windtunnel_host::Options::new(std::env::args().nth(2).unwrap().into(), "/tmp".into());
    match windtunnel_host::run(l.plan, &o, Arc::new(P)) {
        Ok(r) => println!("{}", r.verdict.text),
        Err(e) => {
            eprintln!("{e} {:?} {:?}", std::error::Error::source(&e), e.hint())
        }
    }
}
