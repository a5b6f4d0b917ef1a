# SPDX-License-Identifier: Apache-2.0
"""Options of the whole-model tests."""


def pytest_addoption(parser):
    parser.addoption("--all-models", action="store_true",
                     help="every model in every mode, with measuring (an hour) instead of a few estimated plans")
    parser.addoption("--dovetail", help="the dovetail command (default: bin/dovetail of the build folder)")
