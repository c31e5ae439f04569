"""A client: asks again and again until it is killed, and prints each answer, with the address that
it came from. It waits for a file called `go`.

ask.py each HOST PORT: a connection for each question
ask.py stay HOST PORT: all over one connection
ask.py udp HOST PORT: datagrams of one socket
ask.py tls HOST PORT CERTIFICATE: each over a connection of its own, and one that stays
"""
import itertools
import os
import socket
import ssl
import sys
import time

KIND, HOST, PORT = sys.argv[1:4]
PATIENCE = 2


def connect(context=None):
    it = socket.create_connection((HOST, int(PORT)), timeout=PATIENCE)
    return context.wrap_socket(it, server_hostname=HOST) if context else it


def peer(connection):
    try:
        return connection.getpeername()[0]
    except OSError:
        # It has none any more, as it was reset after the answer.
        raise ConnectionResetError from None


def ask(connection, number):
    connection.sendall(f"{number}\n".encode())
    text = b""
    while not text.endswith(b"\n"):
        more = connection.recv(4096)
        if not more:
            raise EOFError("closed")
        text += more
    return f"{text.decode().strip()} from {peer(connection)}"


def say(text):
    print(text, flush=True)


def attempt(what, act):
    try:
        say(what + act())
    except (OSError, EOFError) as error:
        say(f"{what}{type(error).__name__}")
        return False
    return True


def each(context=None):
    def one(number):
        with connect(context) as connection:
            return ask(connection, number)

    return one


def udp():
    address = socket.getaddrinfo(HOST, int(PORT), type=socket.SOCK_DGRAM)[0]
    it = socket.socket(address[0], socket.SOCK_DGRAM)
    it.settimeout(PATIENCE)

    def one(number):
        it.sendto(str(number).encode(), address[4])
        data, peer = it.recvfrom(2048)
        return f"{data.decode()} from {peer[0]}"

    return one


while not os.path.exists("go"):
    time.sleep(0.01)
CONTEXT = ssl.create_default_context(cafile=sys.argv[4]) if KIND == "tls" else None
one = udp() if KIND == "udp" else each(CONTEXT)
kept = connect(CONTEXT) if KIND in ("stay", "tls") else None
for number in itertools.count():
    if kept is not None and not attempt("stays ", lambda: ask(kept, number)):
        break
    if KIND != "stay":
        attempt("new ", lambda: one(number))
    time.sleep(0.03)
