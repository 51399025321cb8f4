"""The Python of a page of the documentation, run as it stands, block after block, in one module."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def run_blocks(page: str, folder: Path) -> tuple[dict[str, Any], int]:
    """Run the Python blocks of a page; return what they defined, and how many there are.

    They run from a file, because user functions are read from their source; its lines are those of
    the page.
    """
    source = ROOT / page
    text = source.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL))
    assert len(blocks) == text.count("```python\n")
    program = ""
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        program += "\n" * (line - program.count("\n")) + block[1]
    path = folder / f"{source.stem}.py"
    path.write_text(program, encoding="utf-8")
    scope: dict[str, Any] = {"__name__": source.stem}
    exec(compile(program, str(path), "exec"), scope)
    return scope, len(blocks)
