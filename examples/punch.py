"""UDP hole punching (RFC 5128, 3.3): `punch.py server`, or
`punch.py client SERVER PAIR NAME [--predict]` on both sides.

The server says which endpoint it sees of a client, as STUN does, and gives the two clients of a pair
each other's. They send to these until each has got something of the other. A client asks two ports of the
server: where the endpoints differ (a symmetric NAT), `--predict` extrapolates to the next one.
"""

import selectors
import socket
import sys
import time

PORTS = (3478, 3479)
# A client that waits long for a processor is to meet its peer as well.
PATIENCE_S = 6.0


def serve() -> None:
    """Answers for ever."""
    chooser = selectors.DefaultSelector()
    for port in PORTS:
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("0.0.0.0", port))
        chooser.register(server, selectors.EVENT_READ)
    print("ready", flush=True)
    # By pair, then by name: where a client is, and where it is to be sent to.
    pairs: dict[str, dict[str, tuple[tuple[str, int], str]]] = {}
    while True:
        for key, _ in chooser.select():
            server = key.fileobj
            data, source = server.recvfrom(2048)
            words = data.decode().split()
            if words[0] == "ask":
                server.sendto(f"you {source[0]} {source[1]}".encode(), source)
            elif words[0] == "join":
                _, pair, name, address, port = words
                members = pairs.setdefault(pair, {})
                members[name] = (source, f"peer {address} {port}")
                if len(members) == 2:
                    (first, about_first), (second, about_second) = members.values()
                    server.sendto(about_second.encode(), first)
                    server.sendto(about_first.encode(), second)


def ask(client: socket.socket, server: tuple[str, int], question: str, answer: str) -> list[str]:
    """Asks until there is an answer that begins with a word."""
    while True:
        client.sendto(question.encode(), server)
        client.settimeout(0.1)
        try:
            while True:
                words = client.recvfrom(2048)[0].decode().split()
                if words[0] == answer:
                    return words[1:]
        except TimeoutError:
            continue


def punch(client: socket.socket, peer: tuple[str, int], patience_s: float) -> tuple[str, int] | None:
    """Sends to a peer until each knows that the other has got it; where the peer is then."""
    begin, seen, confirmed = time.monotonic(), False, None
    while time.monotonic() < begin + patience_s:
        client.sendto(b"punch seen" if seen else b"punch", peer)
        client.settimeout(0.05)
        try:
            while True:
                data, source = client.recvfrom(2048)
                if data.startswith(b"punch"):
                    # A symmetric NAT has another endpoint for this than for the server.
                    seen, peer = True, source
                    if data.endswith(b"seen") and confirmed is None:
                        # The other side may not know yet.
                        confirmed, begin = source, time.monotonic() - patience_s + 1.0
        except TimeoutError:
            continue
    return confirmed


def meet(server: str, pair: str, name: str, predict: bool) -> int:
    """Meets the other client of a pair; 0 if that works."""
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.bind(("0.0.0.0", 5000))
    host = socket.gethostbyname(server)
    (address, first), (_, second) = [ask(client, (host, port), "ask", "you") for port in PORTS]
    port = int(second) + (int(second) - int(first)) if predict else int(first)
    print(f"{name} is seen at {address}:{first}, then at port {second}", flush=True)
    join = f"join {pair} {name} {address} {port}"
    peer = ask(client, (host, PORTS[0]), join, "peer")
    met = punch(client, (peer[0], int(peer[1])), PATIENCE_S)
    print(f"{name} met {met[0]}:{met[1]}" if met else f"{name} met no peer", flush=True)
    return 0 if met else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["server"]:
        serve()
    elif len(sys.argv) in (5, 6) and sys.argv[1] == "client":
        sys.exit(meet(*sys.argv[2:5], predict=sys.argv[5:] == ["--predict"]))
    else:
        sys.exit(__doc__)
