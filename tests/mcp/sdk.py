#!/usr/bin/env python3
"""sdk.py: runs sdk.mjs, if the official clients are installed. TAP."""
import os

import packages
from client import Tap

why = packages.missing("@modelcontextprotocol/sdk", "@modelcontextprotocol/client")
node = None if why else packages.node(20)
if node:
    here = os.path.dirname(os.path.abspath(__file__))
    os.execv(node, [node, os.path.join(here, "sdk.mjs"), packages.DIR])
tap = Tap()
tap.skip("the official clients", why or "there is no Node 20 or newer")
tap.end()
