"""Service discovery on a LAN: `answer` replies to all queries, `ask` queries all nodes.

The query goes to all nodes (a broadcast) and to the groups of mDNS; the replies are unicast.
"""

import select
import socket
import sys

PORT = 5354
BROADCAST = ("255.255.255.255", PORT)
GROUP_V4 = ("224.0.0.251", PORT)
GROUP_V6 = "ff02::fb"
DEVICE = "eth0"


def answer():
    index = socket.if_nametoindex(DEVICE)
    v4 = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    v4.bind(("", PORT))
    membership = socket.inet_aton(GROUP_V4[0]) + socket.inet_aton("0.0.0.0")
    v4.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    v6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    v6.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    v6.bind(("::", PORT))
    membership = socket.inet_pton(socket.AF_INET6, GROUP_V6) + index.to_bytes(4, sys.byteorder)
    v6.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, membership)
    print("listening", flush=True)
    while True:
        for listener in select.select([v4, v6], [], [])[0]:
            question, sender = listener.recvfrom(1500)
            listener.sendto(b"%s by %s" % (socket.gethostname().encode(), question), sender)


def ask():
    index = socket.if_nametoindex(DEVICE)
    v4 = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    v4.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    v6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    for asker, how, target in [
        (v4, b"broadcast", BROADCAST),
        (v4, b"multicast", GROUP_V4),
        (v6, b"ipv6 multicast", (GROUP_V6, PORT, 0, index)),
    ]:
        asker.settimeout(10)
        asker.sendto(how, target)
        reply, sender = asker.recvfrom(1500)
        print(f"{reply.decode()} at {sender[0]}", flush=True)
        if not reply.endswith(b" by " + how):
            sys.exit("the answer to another question")


{"answer": answer, "ask": ask}[sys.argv[1]]()
