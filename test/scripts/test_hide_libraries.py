# SPDX-License-Identifier: Apache-2.0
"""scripts/hide-libraries: none of the libraries for processors is found, and what does not need them is as before."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("DOVETAIL_BUILD_DIR", ROOT / "build"))
PROVIDERS = {"onednn", "onednn2", "blas"}


def missing(*before) -> dict:
    """What doctor says of each library of these providers."""
    done = subprocess.run([*before, BUILD / "bin/dovetail", "doctor", "--json"], capture_output=True, text=True,
                          env={**os.environ, "DOVETAIL_BUILD_DIR": str(BUILD)}, check=True)
    providers = {provider["name"]: provider for provider in json.loads(done.stdout)["providers"]}
    assert {"native", "reference", "blas"} <= set(providers)
    return {(name, library["name"]): library["missing"] for name in PROVIDERS & set(providers)
            for library in providers[name]["libraries"]}


def test_all_are_hidden():
    here = missing()
    if all(here.values()):
        pytest.skip("no library is here")
    hidden = missing(ROOT / "scripts/hide-libraries")
    assert set(hidden) == set(here)
    assert all("was not found" in reason for reason in hidden.values()), hidden
