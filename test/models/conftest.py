# SPDX-License-Identifier: Apache-2.0
"""Options of the whole-model tests, and what those on devices came to."""
import pathlib

import pytest

import device_counts


def pytest_addoption(parser):
    parser.addoption("--all-models", action="store_true",
                     help="every model in every mode, with measuring (an hour) instead of a few estimated plans")
    parser.addoption("--check-images", action="store_true",
                     help="hold the kernels of all plans for devices against the vendors' tools, not those of one network")
    parser.addoption("--device-counts", metavar="FILE", type=pathlib.Path,
                     help="write what was assembled, run and checked for devices, as JSON")
    parser.addoption("--dovetail", help="the dovetail command (default: bin/dovetail of the build folder)")


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        device_counts.send(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    device_counts.receive(node.config, getattr(node, "workeroutput", {}))


def pytest_terminal_summary(terminalreporter, config):
    if path := config.getoption("--device-counts"):
        device_counts.write(config, path)
    if lines := device_counts.summary(config):
        terminalreporter.section("simulated devices")
        for line in lines:
            terminalreporter.write_line(line)
