"""ready.py PROGRAM WORDS...: a Python program that prints `ready` when it listens on TCP."""

import runpy
import socket
import sys

serve = socket.create_server


def announced(*words, **options):
    listener = serve(*words, **options)
    print("ready", flush=True)
    return listener


socket.create_server = announced
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
