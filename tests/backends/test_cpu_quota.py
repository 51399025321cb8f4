"""The limits of control groups on CPU time."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsejit.backends.llvm import _pool
from sparsejit.backends.llvm._control_groups import ControlGroups
from sparsejit.backends.llvm._cpu_quota import cpu_quota

CASES = {
    "two cores and a half": ("0::/", {"cpu.max": "250000 100000"}, 3),
    "a tenth of a core": ("0::/", {"cpu.max": "10000 100000"}, 1),
    "no limit": ("0::/", {"cpu.max": "max 100000"}, None),
    "no files": ("0::/a/b", {}, None),
    "the group above": ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "400000 100000"}, 4),
    "the least": ("0::/a/b", {"a/b/cpu.max": "200000 100000", "a/cpu.max": "400000 100000"}, 2),
    "version 1": (
        "5:memory:/x\n4:cpu,cpuacct:/x",
        {
            "cpu,cpuacct/x/cpu.cfs_quota_us": "300000",
            "cpu,cpuacct/x/cpu.cfs_period_us": "100000",
        },
        3,
    ),
    "version 1 without a limit": (
        "4:cpu,cpuacct:/",
        {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"},
        None,
    ),
    "a path that leads elsewhere": ("0::/../x", {"cpu.max": "200000 100000"}, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_limits(name: str, tmp_path: Path) -> None:
    own, files, expected = CASES[name]
    groups = tmp_path / "groups"
    for place, text in files.items():
        file = groups / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    (tmp_path / "own").write_text(f"{own}\n")
    assert cpu_quota(ControlGroups(groups, tmp_path / "own")) == expected


def test_a_system_without_control_groups(tmp_path: Path) -> None:
    assert cpu_quota(ControlGroups(tmp_path, tmp_path / "missing")) is None


def test_threads_are_no_more_than_the_limit_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pool, "cpu_quota", lambda: 3)
    assert _pool.thread_limit() == 3
    monkeypatch.setenv("SPARSEJIT_NUM_THREADS", "5")
    assert _pool.thread_limit() == 5
