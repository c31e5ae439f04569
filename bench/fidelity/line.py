#!/usr/bin/env python3
"""A serial line of 10 Mbit/s between two network devices of this kernel: line.py. Needs root and
the kernel's `slip` and `tun`.

Prints the names of both devices when they exist, to be moved and addressed by the caller, and
carries packets until it is ended. The first is a SLIP device on a pseudo-terminal. The kernel stops
the queue of such a device with each packet and wakes it when the terminal's other end has been
read, so that its root discipline sees the backlog of a device that transmits one packet at a time.
Here the other end is read when a packet's last bit would have left: its IP bytes and Ethernet's 38
take their time at the rate, counted from the end of the packet before, so that waking late costs no
rate. The second device is a TUN: packets leave the line there, and what it sends goes back without
delay.
"""

import fcntl
import os
import pty
import select
import struct
import time
import tty

RATE, ETHERNET = 10_000_000, 38
# linux/tty.h, linux/sockios.h, linux/if_tun.h
N_SLIP, TIOCSETD, SIOCGIFNAME, SIOCSIFENCAP = 1, 0x5423, 0x8910, 0x8926
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
END, ESCAPE = b"\xc0", b"\xdb"
# A packet that can be read after so many short sleeps had waited for the one before: its time
# begins when that one's ended. The kernel's threads that bring it need to run for that, which is
# why sleeps count and not the time. One that only now comes begins so much too early, 1 ms at most.
SLEEPS, SLEEP = 5, 0.0001
# The length of a packet is in the first bytes. The rest stays unread, and with more than 128 bytes
# unread the kernel does not wake the queue.
HEAD = 64


def escaped(packet):
    return END + packet.replace(ESCAPE, ESCAPE + b"\xdd").replace(END, ESCAPE + b"\xdc") + END


def plain(frame):
    return frame.replace(ESCAPE + b"\xdc", END).replace(ESCAPE + b"\xdd", ESCAPE)


class Line:
    def __init__(self, terminal, tun):
        self.terminal, self.tun = terminal, tun
        self.read = b""  # of the frame on the line and those behind it
        self.due = None  # when the packet on the line has left

    def begin(self, since):
        """A packet takes the line."""
        while len(self.read) < 8:
            self.read = (self.read + os.read(self.terminal, HEAD)).lstrip(END)
        (length,) = struct.unpack("!H", plain(self.read)[2:4])
        self.due = since + (length + ETHERNET) * 8_000_000_000 // RATE

    def end(self):
        """It has left the line."""
        while END not in self.read:
            self.read += os.read(self.terminal, 4096)
        ended, self.due = self.due, None
        frame, rest = self.read.split(END, 1)
        self.read = rest.lstrip(END)
        os.write(self.tun, plain(frame))
        # Reading has woken the queue: what waited comes at once, however late this is.
        if self.read or any(
            select.select([self.terminal], [], [], SLEEP)[0] for _ in range(SLEEPS)
        ):
            self.begin(ended)

    def carry(self):
        while True:
            left = None if self.due is None else (self.due - time.monotonic_ns()) / 1e9
            if left is not None and left <= 0:
                self.end()
                continue
            ready, _, _ = select.select(
                [self.tun] if self.due else [self.tun, self.terminal], [], [], left
            )
            if self.terminal in ready:
                self.begin(time.monotonic_ns())
            if self.tun in ready:
                os.write(self.terminal, escaped(os.read(self.tun, 4096)))


def slip():
    """A terminal, and the name of the SLIP device on its other end."""
    terminal, other = pty.openpty()
    tty.setraw(terminal)
    tty.setraw(other)
    fcntl.ioctl(other, TIOCSETD, struct.pack("i", N_SLIP))
    fcntl.ioctl(other, SIOCSIFENCAP, struct.pack("i", 0))
    name = fcntl.ioctl(other, SIOCGIFNAME, bytes(16)).rstrip(b"\0").decode()
    return terminal, other, name


def tunnel():
    tun = os.open("/dev/net/tun", os.O_RDWR)
    answer = fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"wtline%d", IFF_TUN | IFF_NO_PI))
    return tun, answer[:16].rstrip(b"\0").decode()


if __name__ == "__main__":
    terminal, _other, near = slip()
    tun, far = tunnel()
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    print(near, far, flush=True)
    Line(terminal, tun).carry()
