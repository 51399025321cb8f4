"""The Python of docs/gpu.md runs as it stands, on the fake device."""

import re
from pathlib import Path

import pytest

from sparsejit.runtime.fake import FakeRuntime
from sparsejit.runtime.opening import use_runtime

PAGE = Path(__file__).resolve().parents[1] / "docs" / "gpu.md"


def test_the_python_blocks_run_in_order(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == text.count("```python\n") == 2
    path = tmp_path / "gpu.py"
    path.write_text("\n".join(blocks), encoding="utf-8")
    scope = {"__name__": "gpu"}
    with use_runtime(FakeRuntime()):
        exec(compile("\n".join(blocks), str(path), "exec"), scope)
        exec("import numpy as np; assert (plan(np.ones(800)) == A @ np.ones(800)).all()", scope)
    assert "A_vals is mapped: it is read once, in order" in capsys.readouterr().out
