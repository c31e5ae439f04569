"""A server that says who it is: each line (tcp) or datagram (udp) is answered with the name of its
node, its own address and its client's. It knows nothing of services.

serve.py tcp|udp ADDRESS PORT
serve.py toggle ADDRESS PORT TIMES: listens and closes, and prints when, in nanoseconds
serve.py tls ADDRESS PORT CERTIFICATE KEY
serve.py http ADDRESS PORT: 503 while there is a file called sick-NODE
"""
import os
import socket
import ssl
import sys
import threading
import time

NAME = os.environ["WINDTUNNEL_NODE"]


def opened(kind, address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    it = socket.socket(family, kind)
    it.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    it.bind((address, int(port)))
    return it


def plain(address):
    return address.removeprefix("::ffff:")


def answer(connection):
    own, peer = connection.getsockname()[0], connection.getpeername()[0]
    with connection:
        for line in connection.makefile("r"):
            text = f"{NAME} at {plain(own)} sees {plain(peer)} {line}"
            connection.sendall(text.encode())


def http(connection):
    with connection:
        if not connection.recv(4096):
            return
        status = "503 Sick" if os.path.exists(f"sick-{NAME}") else "200 OK"
        body = NAME + "\n"
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        connection.sendall((head + body).encode())


def accept(listener, handle, wrap=lambda connection: connection):
    def one(connection):
        try:
            handle(wrap(connection))
        except OSError as error:
            print(error, flush=True)

    while True:
        threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()


def main(kind, address, port, *rest):
    if kind == "udp":
        it = opened(socket.SOCK_DGRAM, address, port)
        while True:
            data, peer = it.recvfrom(2048)
            it.sendto(f"{NAME} sees {plain(peer[0])} {data.decode()}".encode(), peer)
    if kind == "toggle":
        for _ in range(int(rest[0])):
            it = opened(socket.SOCK_STREAM, address, port)
            print("listens", time.monotonic_ns(), flush=True)
            it.listen()
            time.sleep(0.15)
            print("closes", time.monotonic_ns(), flush=True)
            it.close()
            time.sleep(0.15)
        return
    listener = opened(socket.SOCK_STREAM, address, port)
    listener.listen()
    if kind == "tls":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*rest)
        accept(listener, answer, lambda it: context.wrap_socket(it, server_side=True))
    accept(listener, http if kind == "http" else answer)


main(*sys.argv[1:])
