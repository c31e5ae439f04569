"""ready.py PROGRAM WORDS...: runs a Python program that listens on TCP, and says `ready` first, when it listens."""
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
