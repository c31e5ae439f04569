//! The program `windtunnel`.

fn main() -> std::process::ExitCode {
    windtunnel_cli::main()
}
