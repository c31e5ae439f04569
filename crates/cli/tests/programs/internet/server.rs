//! Servers on the machine's loopback.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a server does with a connection.
pub(super) enum Behaviour {
    /// Answers a request of HTTP with a page.
    Page(String),
    /// Tears it as soon as something has come.
    Tear,
    /// Sends back all that came, when the other end has ended.
    EchoAtEnd,
}

/// A server of the test's process, as long as that lives.
pub(super) struct Server {
    port: u16,
    served: Arc<AtomicUsize>,
}

impl Server {
    pub(super) fn start(behaviour: Behaviour) -> Server {
        Server::start_at("127.0.0.1:0", behaviour).unwrap()
    }

    /// One at another address; `None` where the machine has it not.
    pub(super) fn start_at(at: &str, behaviour: Behaviour) -> Option<Server> {
        let listener = TcpListener::bind(at).ok()?;
        let port = listener.local_addr().unwrap().port();
        let served = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&served);
        let behaviour = Arc::new(behaviour);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let behaviour = Arc::clone(&behaviour);
                std::thread::spawn(move || serve(connection, &behaviour));
            }
        });
        Some(Server { port, served })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// How many connections have come.
    pub(super) fn served(&self) -> usize {
        self.served.load(Ordering::SeqCst)
    }
}

/// Sends datagrams back, as long as the test's process lives; its port.
pub(super) fn echo() -> u16 {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while let Ok((length, from)) = server.recv_from(&mut buffer) {
            let _ = server.send_to(&buffer[..length], from);
        }
    });
    port
}

/// What goes wrong shows at the client.
fn serve(mut connection: TcpStream, behaviour: &Behaviour) {
    let mut buffer = vec![0; 65_536];
    match behaviour {
        Behaviour::Page(body) => {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                match connection.read(&mut buffer) {
                    Ok(0) | Err(_) => return,
                    Ok(length) => request.extend(&buffer[..length]),
                }
            }
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n"
            );
            let _ = connection.write_all(&[head.as_bytes(), body.as_bytes()].concat());
        }
        Behaviour::Tear => {
            // What was not read when a connection is closed tears it (RFC 9293, 3.10.4).
            let _ = connection.peek(&mut buffer);
        }
        Behaviour::EchoAtEnd => {
            let mut all = Vec::new();
            let _ = connection.read_to_end(&mut all);
            let _ = connection.write_all(&all);
        }
    }
}
