"""An HTTP server whose replies depend on the request alone: it leaves the `Date` header out, as
`fail-over: transparent` needs replies that are the same, byte for byte.

same.py PORT LINES: each page is so many lines `windtunnel`
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, LINES = int(sys.argv[1]), int(sys.argv[2])
PAGE = b"windtunnel\n" * LINES


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)


ThreadingHTTPServer(("", PORT), Handler).serve_forever()
