# SPDX-License-Identifier: Apache-2.0
"""Plug-ins that cannot be loaded cost themselves and nothing else, and none comes from the current folder."""
import json
import pathlib
import re
import shutil
import subprocess

import pytest

import makers
from command import ESTIMATE, ROOT

SOURCE = """
#include <dovetail/provider.h>
#include <stdio.h>
static dvt_provider_api api;
__attribute__((constructor)) static void loaded(void) {
  FILE *file = fopen("loaded", "w");
  if (file) fclose(file);
}
const dvt_provider_api *dvt_provider_entry(uint32_t version) { BODY }
"""
BODIES = {
    "other_version": 'api.struct_size = sizeof api; api.abi_version = version + 1; api.name = "other"; return &api;',
    "nothing": "return 0;",
    "small": "api.struct_size = 8; return &api;",
    "holes": 'api.struct_size = sizeof api; api.abi_version = version; api.name = "holes"; return &api;',
}
REASONS = {
    "garbage": "not a shared library",
    "text": "not a shared library",
    "no_entry": "exports no dvt_provider_entry",
    "cut": "cut short",
    "other_version": "built for version [0-9]+ of the plug-in door, this is version",
    "nothing": "does not serve version",
    "small": "its function table has 8 bytes",
    "holes": "its function table has holes",
}


@pytest.fixture(scope="session")
def bad_plugins(tmp_path_factory, binary):
    """A folder with one bad plug-in for each reason."""
    folder = tmp_path_factory.mktemp("plugins")
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "a C compiler built Dovetail and is wanted here, too"
    for name, body in [*BODIES.items(), ("no_entry", "")]:
        source = SOURCE.replace("BODY", body) if body else "int nothing_here;"
        (folder / f"{name}.c").write_text(source)
        subprocess.run([compiler, "-shared", "-fPIC", "-I", ROOT / "include", folder / f"{name}.c", "-o",
                        folder / f"dovetail_{name}.so"], check=True, timeout=60)
    (folder / "dovetail_garbage.so").write_bytes(bytes(range(256)) * 40)
    (folder / "dovetail_text.so").write_text("not a library\n")
    whole = binary.parent.parent / "lib/dovetail/dovetail_reference.so"
    (folder / "dovetail_cut.so").write_bytes(whole.read_bytes()[:5000])
    return folder


def providers(done) -> set:
    return {provider["name"] for provider in json.loads(done.stdout)["providers"]}


@pytest.mark.parametrize("way", ["option", "environment"])
def test_bad_plugins_cost_themselves(dovetail, bad_plugins, way):
    arguments, environment = (["--plugins", bad_plugins], {}) if way == "option" else \
        ([], {"DOVETAIL_PLUGINS": str(bad_plugins)})
    done = dovetail("doctor", "--json", *arguments, **environment)
    reasons = {failure["file"]: failure["reason"] for failure in json.loads(done.stdout)["failures"]}
    for name, reason in REASONS.items():
        assert re.search(reason, reasons[str(bad_plugins / f"dovetail_{name}.so")]), name
    assert {"native", "reference"} <= providers(done)
    path = dovetail.write("tiny.onnx", makers.tiny())
    done = dovetail("run", path, ESTIMATE, *arguments, **environment)
    lines = done.stderr.splitlines()
    assert len(lines) == len(REASONS), done.stderr
    for name, reason in REASONS.items():
        assert any(line.startswith("dovetail: warning: ") and f"dovetail_{name}.so" in line and re.search(reason, line)
                   for line in lines), name


def test_only_a_bad_plugin(dovetail, bad_plugins):
    path = dovetail.write("tiny.onnx", makers.tiny())
    done = dovetail.raw("run", path, ESTIMATE, "--plugins", bad_plugins, "--only", "holes")
    assert done.returncode == 3
    errors = [line for line in done.stderr.splitlines() if not line.startswith("dovetail: warning: ")]
    assert len(errors) == 1 and errors[0].startswith("dovetail: error: --only=holes: there is no such provider")


def test_none_from_the_current_folder(dovetail, bad_plugins):
    """Neither by itself, nor through an empty entry of the environment's list."""
    for name in "dovetail_holes.so", "dovetail_local.so":
        shutil.copy(bad_plugins / "dovetail_holes.so", dovetail.folder / name)
    (dovetail.folder / "lib/dovetail").mkdir(parents=True)
    shutil.copy(bad_plugins / "dovetail_holes.so", dovetail.folder / "lib/dovetail/dovetail_holes.so")
    path = dovetail.write("tiny.onnx", makers.tiny())
    for environment in {}, {"DOVETAIL_PLUGINS": ""}, {"DOVETAIL_PLUGINS": ":"}, {"DOVETAIL_VENDOR_PATH": ""}, \
            {"DOVETAIL_VENDOR_PATH": ":"}:
        done = dovetail("doctor", "--json", **environment)
        # Of ours one has nothing to do without a kernel of the user's.
        assert {pathlib.Path(failure["file"]).name for failure in json.loads(done.stdout)["failures"]} == {
            "dovetail_user.so"}
        assert dovetail("run", path, ESTIMATE, **environment).stderr == ""
        assert not (dovetail.folder / "loaded").exists()
    dovetail("doctor", "--plugins", dovetail.folder)
    assert (dovetail.folder / "loaded").exists(), "where the user asks for it, it is loaded"


def test_plugin_folder_is_not_there(dovetail):
    path = dovetail.write("tiny.onnx", makers.tiny())
    dovetail.refuses(2, "run", path, ESTIMATE, "--plugins", "nowhere", says="--plugins: there is no folder nowhere")
    dovetail.refuses(2, "run", path, ESTIMATE, "--plugins", path, says="--plugins: there is no folder tiny.onnx")
