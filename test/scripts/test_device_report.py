# SPDX-License-Identifier: Apache-2.0
"""scripts/device-report over programs that only say what they counted."""
import json
import os
import pathlib
import runpy
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/device-report"
Counts = runpy.run_path(str(SCRIPT))["Counts"]


def report_of(*results: str, **properties) -> dict:
    """A GoogleTest report; a result is "passed", "failed" or "skipped"."""
    each = [{"name": f"Test{i}", **({"failures": [{}]} if result == "failed" else {}),
             "result": "SKIPPED" if result == "skipped" else "COMPLETED"} for i, result in enumerate(results)]
    return {"testsuites": [{"name": "Suite", "testsuite": each}], **properties}


@pytest.fixture
def counts(tmp_path):
    made = Counts()
    made.take_test_report("program", report_of("passed", "failed", "skipped",
                                               **{"sm_90.kernels": "5", "sm_90.assembled": "4", "sm_90.entries": "9",
                                                  "spirv.rows.translated": "3", "spirv.rows.ran": "2"}))
    drivers = tmp_path / "drivers"
    drivers.write_text('{"architecture": "sm_90", "calls": 10, "launches": 2}\n'
                       '{"architecture": "gfx942", "calls": 3, "library calls": 1}\n')
    made.take_driver_report(drivers)
    made.take_driver_report(tmp_path / "nothing")
    made.take_models({"cuda:sm_90": {"models": 2, "kernels": 6, "Ptx sm_90 images": 6, "calls": 100, "launches": 8}})
    return made


def test_what_was_counted_is_added_up(counts):
    found = counts.as_json()
    assert found["architectures"]["sm_90"] == {"kernels": 11, "assembled": 4, "disassembled": 0, "matrix_kernels": 0,
                                               "models": 2, "launches": 10, "library calls": 0, "calls": 110}
    assert found["architectures"]["gfx942"]["calls"] == 3
    assert found["architectures"]["gfx942"]["library calls"] == 1
    assert found["spirv"] == {"rows": {"translated": 3, "ran": 2}}
    assert found["tests"] == {"passed": 1, "failed": 1, "skipped": 1}
    assert found["failed"] == ["program: Suite.Test1"]
    json.dumps(found)


def test_the_table_has_a_line_for_each_architecture(counts):
    lines = counts.as_text().splitlines()
    assert lines[0].split() == ["kernels", "assembled", "disassembled", "matrix", "units", "models", "launches",
                                "library", "calls", "driver", "calls"]
    assert lines[2].split() == ["sm_90", "11", "4", "0", "0", "2", "10", "0", "110"]
    assert "kernels run by Vulkan of those translated to SPIR-V: rows 2/3" in lines
    assert lines[-1] == "FAILED: program: Suite.Test1"


def test_nothing_built(tmp_path):
    done = subprocess.run([sys.executable, SCRIPT], text=True, capture_output=True, check=False,
                          env=os.environ | {"DOVETAIL_BUILD_DIR": str(tmp_path)})
    assert done.returncode == 3
    assert "build first, with scripts/build" in done.stderr and done.stdout == ""
