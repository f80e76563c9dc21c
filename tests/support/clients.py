"""The drivers of real clients (tests/clients) for other suites."""

import importlib.machinery
import importlib.util
import os
import sys

CLIENTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "clients")
sys.path.insert(0, CLIENTS)


def _run():
    """tests/clients/run as a module."""
    loader = importlib.machinery.SourceFileLoader("clients_run", os.path.join(CLIENTS, "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("clients_run", loader))
    loader.exec_module(module)
    return module


start = _run().start  # (client, bootstrap, folder for its standard error): one more driver process of that client
