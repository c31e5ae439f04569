"""Puts a measured table into a document, between `<!-- NAME: measured -->` and `<!-- end of NAME -->`."""
from pathlib import Path


def splice(document, name, text):
    path = Path(document)
    begin, end = f"<!-- {name}: measured -->", f"<!-- end of {name} -->"
    before, rest = path.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(end)
    path.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}", encoding="utf-8")
